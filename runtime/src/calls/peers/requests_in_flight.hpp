#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calls/deaths/kept_reply.hpp"
#include "calls/progress.hpp"

namespace troupe::runtime {

/// What was asked of one process through its socket and has no answer yet. Each is told of its end
/// once, and has left by then: whoever is told may ask again.
class RequestsInFlight {
 public:
  /// `lost`: there is no answer, and this is how far the process had come with it; the outcome is
  /// then how it ended.
  using Done =
      std::function<void(Outcome, std::optional<Progress> lost, std::chrono::nanoseconds run_time)>;

  void add(std::uint64_t id, Done done) { pending_.emplace(id, std::move(done)); }
  /// Does nothing where it is not in flight any more, and so does each of these.
  void answer(std::uint64_t id, Outcome outcome, std::chrono::nanoseconds run_time) {
    end(id, std::move(outcome), std::nullopt, run_time);
  }
  /// Of a process that has ended; those to calls through a ring are not meant.
  void answer(const std::vector<KeptReply>& replies) {
    for (const auto& reply : replies) answer(reply.call, reply.outcome, reply.run_time);
  }
  void lose(std::uint64_t id, const Failure& how, Progress progress) { end(id, how, progress, {}); }
  /// `progress`: of the request with this id.
  void lose_all(const Failure& how, const auto& progress) {
    for (auto& [id, done] : std::exchange(pending_, {})) done(how, progress(id), {});
  }

 private:
  void end(std::uint64_t id, Outcome outcome, std::optional<Progress> lost,
           std::chrono::nanoseconds run_time) {
    auto pending = pending_.extract(id);
    if (!pending.empty()) pending.mapped()(std::move(outcome), lost, run_time);
  }

  std::unordered_map<std::uint64_t, Done> pending_;
};

}  // namespace troupe::runtime
