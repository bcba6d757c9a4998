#include "host/host_facts.hpp"

#include "host/network_interface.hpp"
#include "plan/environment.hpp"

namespace troupe::launch {

HostFacts facts_of(const GangContext& gang, const std::vector<ReservedPort>& ports,
                   std::unique_ptr<RendezvousServer>& rendezvous) {
  HostFacts facts;
  facts.node_rank = gang.node_rank();
  facts.address = gang.host();
  facts.node = gang.node();
  facts.gpus = visible_gpus();
  for (const auto& port : ports) facts.ports.push_back(port.number());
  facts.interface = interface_of(facts.address);
  if (gang.rank() == 0) rendezvous = RendezvousServer::listen(facts.address);
  if (rendezvous) facts.rendezvous_port = rendezvous->port();
  return facts;
}

}  // namespace troupe::launch
