#pragma once

#include <memory>
#include <vector>

#include <troupe/gang_context.hpp>

#include "host/rendezvous_server.hpp"
#include "host/reserved_port.hpp"
#include "plan/plan.hpp"

namespace troupe::launch {

/// What the plan of a gang has to know of this host, a rank of `gang`. On the first host it begins to
/// serve Horovod's rendezvous, which `rendezvous` then owns; on the others `rendezvous` stays empty.
HostFacts facts_of(const GangContext& gang, const std::vector<ReservedPort>& ports,
                   std::unique_ptr<RendezvousServer>& rendezvous);

}  // namespace troupe::launch
