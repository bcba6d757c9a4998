#pragma once

#include <sstream>
#include <string>

#include <troupe/scheduler/state.hpp>

namespace troupe::scheduler::test {

/// All that a state tells about itself, as text: two states with one picture cannot be told apart
/// by who asks them.
inline std::string picture(const State& state) {
  std::ostringstream out;
  for (const auto& it : state.pending()) {
    out << "request " << it.request << ' ' << it.what << ' ' << it.job << ' ' << it.requester << ' '
        << it.since.count() << ' ' << it.reason << '\n';
  }
  for (const auto& it : state.nodes()) {
    out << "node " << it.node << ' ' << it.incarnation << ' ' << to_string(it.free) << ' '
        << it.processes << ' ' << it.idle << ' ' << it.leases << ' ' << it.actors << ' ' << it.ranks
        << ' ' << it.blocked << ' ' << it.state;
    for (const auto& gpu : it.gpu_free) out << ' ' << gpu.units();
    out << '\n';
  }
  for (const auto& it : state.actors()) {
    out << "actor " << it.actor << ' ' << it.request << ' ' << it.name << ' ' << it.type << ' '
        << it.job << ' ' << it.requester << ' ' << to_string(it.stage) << ' ' << it.process << '\n';
  }
  for (const auto& it : state.gangs()) {
    out << "gang " << it.gang << ' ' << it.request << ' ' << it.job << ' ' << it.requester << ' '
        << to_string(it.stage);
    for (const auto& member : it.members) out << ' ' << member.process;
    out << '\n';
  }
  for (const auto& it : state.jobs()) {
    out << "job " << it.job << ' ' << it.driver << ' ' << it.weight << ' ' << it.ended << ' '
        << it.processes << ' ' << it.leases << ' ' << it.actors << ' ' << it.gangs << ' '
        << it.pending << '\n';
  }
  for (const auto& it : state.processes()) {
    out << "process " << it.process << ' ' << it.node << ' ' << it.job << ' ' << to_string(it.state)
        << ' ' << it.use << ' ' << to_string(it.held) << '\n';
  }
  return out.str();
}

}  // namespace troupe::scheduler::test
