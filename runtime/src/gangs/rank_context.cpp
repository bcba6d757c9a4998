#include "gangs/rank_context.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <troupe/detail/failure.hpp>

#include "log/log.hpp"
#include "objects/doorbell.hpp"
#include "objects/process_context.hpp"

namespace troupe::runtime {
namespace {

using Action = RendezvousRequest::Action;

/// For what is answered at once.
constexpr std::chrono::seconds kAnswer{30};

bool has_died(const Failure& failure) {
  using Kind = Failure::Kind;
  return failure.kind == Kind::ProcessDied || failure.kind == Kind::ActorDied;
}

}  // namespace

Failure rank_gone(std::uint32_t rank, Failure how) {
  how.kind = Failure::Kind::GangBroken;
  how.message = fmt::format("rank {} is gone: {}", rank, how.message);
  return how;
}

RankContext::RankContext(GangId gang, int rank, std::vector<Place> members, Ask ask)
    : gang_(gang), rank_(rank), members_(std::move(members)), ask_(std::move(ask)) {}

int RankContext::local_size() const {
  return static_cast<int>(std::ranges::count(members_, node_rank(), &Place::node_rank));
}

int RankContext::node_count() const {
  return 1 + std::ranges::max(members_, {}, &Place::node_rank).node_rank;
}

std::vector<int> RankContext::node_ranks() const {
  std::vector<int> ranks;
  for (const auto& member : members_) ranks.push_back(member.node_rank);
  return ranks;
}

Failure RankContext::why_broken() const {
  return broken_.load(std::memory_order_acquire) != 0 ? why_ : Failure{};
}

void RankContext::break_with(Failure why) {
  if (broken_.load(std::memory_order_relaxed) != 0) return;
  why_ = std::move(why);
  why_.kind = Failure::Kind::GangBroken;
  broken_.store(1, std::memory_order_release);
  doorbell().ring();
  listeners_.notify();
}

/// What one throws on the loop must not keep the others from hearing of it, nor end the process.
std::shared_ptr<void> RankContext::on_broken(std::function<void()> then) {
  return listeners_.add([then = std::move(then)] {
    try {
      then();
    } catch (...) {
      log::error("what was given to GangContext::on_broken threw, and ends with that: " +
                 detail::current_failure({}).message);
    }
  });
}

void RankContext::set(std::string_view key, std::string_view value) {
  exchange({.action = Action::Set,
            .key = std::string(key),
            .value = std::string(value),
            .timeout = kAnswer},
           "which rank 0 did not answer");
}

std::string RankContext::get(std::string_view key, std::chrono::milliseconds timeout) {
  return exchange({.action = Action::Get, .key = std::string(key), .timeout = timeout},
                  "which no rank has set");
}

void RankContext::advance(std::string_view counter, std::uint64_t count, std::string_view note) {
  exchange({.action = Action::Advance,
            .key = std::string(counter),
            .value = std::string(note),
            .count = count,
            .timeout = kAnswer},
           "which rank 0 did not answer");
}

std::string RankContext::await(std::string_view counter, std::uint64_t count,
                               std::chrono::milliseconds timeout) {
  return exchange(
      {.action = Action::Await, .key = std::string(counter), .count = count, .timeout = timeout},
      "which no rank has brought so far");
}

void RankContext::forget(std::string_view prefix) {
  exchange({.action = Action::Forget, .key = std::string(prefix), .timeout = kAnswer},
           "which rank 0 did not answer");
}

std::string RankContext::exchange(RendezvousRequest request, const char* what_is_missing) {
  if (const auto* process = ProcessContext::maybe(); process && process->is_on_loop())
    ProcessContext::refuse_on_loop();
  auto answer = detail::Object::pending(0);
  const auto key = request.key;
  const auto timeout = request.timeout;
  ask_(std::move(request), [this, answer](Outcome outcome) {
    // Rank 0 keeps what the ranks tell each other: to those that ask, its end is that of the gang,
    // and no error of theirs. The head's word of it may be on its way.
    if (const auto* failure = std::get_if<Failure>(&outcome); failure && has_died(*failure)) {
      outcome = rank_gone(0, *failure);
      break_with(std::get<Failure>(outcome));
    }
    answer->complete(std::move(outcome));
  });
  const auto arrived =
      wait([&] { return answer->ready() || broken_.load(std::memory_order_acquire) != 0; },
           deadline_after(timeout));
  if (!answer->ready() && broken_.load(std::memory_order_acquire) != 0) raise(why_);
  const auto* failure = arrived ? std::get_if<Failure>(&answer->outcome()) : nullptr;
  // Rank 0 has dropped the wait, whose time was over, before this thread woke up to see that.
  const bool was_dropped = failure && failure->kind == Failure::Kind::TimedOut;
  if (!arrived || was_dropped) {
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("rank {} waited {} ms for rendezvous key '{}', {}", rank_,
                                  timeout.count(), key, what_is_missing)});
  }
  if (failure) raise(*failure);
  return std::get<detail::Payload>(answer->outcome()).bytes;
}

}  // namespace troupe::runtime
