#pragma once

#include <vector>

#include <troupe/troupe.hpp>

#include "counter.hpp"
#include "harness.hpp"
#include "processes.hpp"

namespace troupe::bench {

/// -> seconds from the first request to the last reply of twenty actors, each called once. The
/// actors are gone when it returns.
inline double start_twenty() {
  const auto start = Clock::now();
  std::vector<Actor<Counter>> actors;
  for (int i = 0; i < 20; ++i) actors.push_back(spawn<Counter>());
  std::vector<Ref<int>> replies;
  for (const auto& actor : actors) replies.push_back(actor.call<&Counter::add>(1));
  for (const auto& reply : replies) reply.get();
  const auto seconds = seconds_since(start);

  std::vector<Ref<int>> pids;
  for (const auto& actor : actors) pids.push_back(actor.call<&Counter::pid>());
  const auto known = get(pids);
  actors.clear();
  for (const auto pid : known) has_ended(pid, std::chrono::seconds(5));
  return seconds;
}

}  // namespace troupe::bench
