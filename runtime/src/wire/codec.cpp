#include "wire/codec.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::runtime {

AddressPtr read_address(wire::Address::Reader from) {
  return std::make_shared<const Address>(Address{.process = ProcessId(from.getProcess()),
                                                 .node = NodeId(from.getNode()),
                                                 .host = from.getHost(),
                                                 .port = from.getPort(),
                                                 .unix_name = from.getUnixName(),
                                                 .machine = from.getMachine(),
                                                 .access = {}});
}

AddressPtr read_grant(wire::ActorGrant::Reader from) {
  auto address = std::make_shared<Address>(*read_address(from.getProcess()));
  if (from.getJob() != 0) {
    JobAccess access{.job = JobId(from.getJob()), .key = {}};
    const auto key = from.getJobKey();
    std::copy_n(key.begin(), std::min(key.size(), access.key.size()), access.key.begin());
    address->access = std::make_shared<const JobAccess>(access);
  }
  return address;
}

void write_address(wire::Address::Builder to, const Address& address) {
  to.setProcess(address.process.value());
  to.setNode(address.node.value());
  to.setHost(address.host);
  to.setPort(address.port);
  to.setUnixName(address.unix_name);
  to.setMachine(address.machine);
}

Failure lost_with_node(ProcessId process, const std::string& what) {
  return {.kind = Failure::Kind::ProcessDied,
          .message = fmt::format("process {} {}", process, what),
          .exit_code = -1};
}

Failure read_failure(wire::Failure::Reader from) {
  return Failure{.kind = static_cast<Failure::Kind>(from.getKind()),
                 .message = from.getMessage(),
                 .type = from.getType(),
                 .where = from.getWhere(),
                 .signal = from.getSignal(),
                 .exit_code = from.getExitCode()};
}

void write_failure(wire::Failure::Builder to, const Failure& failure) {
  to.setKind(static_cast<std::uint16_t>(failure.kind));
  to.setMessage(failure.message);
  to.setType(failure.type);
  to.setWhere(failure.where);
  to.setSignal(failure.signal);
  to.setExitCode(failure.exit_code);
}

void write_request(wire::Request::Builder to, const detail::RequestOptions& options) {
  auto resources = to.initResources(static_cast<unsigned>(options.resources.size()));
  for (unsigned i = 0; i < resources.size(); ++i) {
    resources[i].setName(options.resources[i].first);
    resources[i].setUnits(options.resources[i].second);
  }
  auto labels = to.initLabels(static_cast<unsigned>(options.labels.size()));
  for (unsigned i = 0; i < labels.size(); ++i) {
    labels[i].setKey(options.labels[i].first);
    labels[i].setValue(options.labels[i].second);
  }
  to.setSpread(options.spread);
}

}  // namespace troupe::runtime
