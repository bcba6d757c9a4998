#pragma once

#include <cstdint>

#include <troupe/scheduler/ids.hpp>

/// Ids as they are written in tests: 1_job, 5_actor. A life is an incarnation of a node.
namespace troupe::id_literals {

constexpr scheduler::NodeId operator""_node(unsigned long long number) {
  return scheduler::NodeId{static_cast<std::uint32_t>(number)};
}
constexpr scheduler::Incarnation operator""_life(unsigned long long number) {
  return scheduler::Incarnation{number};
}
constexpr scheduler::JobId operator""_job(unsigned long long number) {
  return scheduler::JobId{number};
}
constexpr scheduler::ProcessId operator""_process(unsigned long long number) {
  return scheduler::ProcessId{number};
}
constexpr scheduler::RequestId operator""_request(unsigned long long number) {
  return scheduler::RequestId{number};
}
constexpr scheduler::ActorId operator""_actor(unsigned long long number) {
  return scheduler::ActorId{number};
}
constexpr scheduler::GangId operator""_gang(unsigned long long number) {
  return scheduler::GangId{number};
}

}  // namespace troupe::id_literals

using namespace troupe::id_literals;
