#include "process/gang.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "process/doorbell.hpp"

namespace troupe::process {
namespace {

Failure refusal(std::string message) { return {.kind = Failure::Kind::Refused, .message = std::move(message)}; }

/// Rank 0 keeps what the ranks tell each other: to those that ask, its end is that of the gang, and no error of theirs.
Failure seen_by_others(Failure failure) {
  using Kind = Failure::Kind;
  const bool died = failure.kind == Kind::ProcessDied || failure.kind == Kind::ActorDied;
  return died ? rank_gone(0, std::move(failure)) : failure;
}

Outcome as_outcome(std::string bytes) { return detail::Payload{.bytes = std::move(bytes), .refs = {}}; }

}  // namespace

Failure rank_gone(std::uint32_t rank, Failure how) {
  how.kind = Failure::Kind::GangBroken;
  how.message = fmt::format("rank {} is gone: {}", rank, how.message);
  return how;
}

void GangStore::set(std::uint64_t gang, const std::string& key, std::string value, const Answer& answer) {
  if (value.size() > kLargestValue) {
    return answer(
        refusal(fmt::format("rendezvous key '{}': {} bytes; at most {} fit", key, value.size(), kLargestValue)));
  }
  auto& slots = gangs_[gang];
  if (slots.size() >= kMostKeys && !slots.contains(key)) {
    return answer(refusal(fmt::format("the rendezvous of this gang holds {} keys, which is its limit", kMostKeys)));
  }
  auto& slot = slots[key];
  if (slot.is_set && slot.value != value) {
    return answer(refusal(fmt::format("rendezvous key '{}' has been set to another value before", key)));
  }
  slot.is_set = true;
  slot.value = std::move(value);
  for (auto& waiting : std::exchange(slot.waiting, {})) waiting(as_outcome(slot.value));
  answer(as_outcome({}));
}

void GangStore::get(std::uint64_t gang, const std::string& key, Answer answer) {
  auto& slot = gangs_[gang][key];
  if (slot.is_set) return answer(as_outcome(slot.value));
  slot.waiting.push_back(std::move(answer));
}

RankContext::RankContext(std::uint64_t gang, int rank, std::vector<Place> members, Ask ask)
    : gang_(gang), rank_(rank), members_(std::move(members)), ask_(std::move(ask)) {}

int RankContext::local_size() const {
  return static_cast<int>(std::ranges::count(members_, node_rank(), &Place::node_rank));
}

int RankContext::node_count() const { return 1 + std::ranges::max(members_, {}, &Place::node_rank).node_rank; }

std::vector<int> RankContext::node_ranks() const {
  std::vector<int> ranks;
  for (const auto& member : members_) ranks.push_back(member.node_rank);
  return ranks;
}

Failure RankContext::why_broken() const { return broken_.load(std::memory_order_acquire) != 0 ? why_ : Failure{}; }

void RankContext::break_with(Failure why) {
  if (broken_.load(std::memory_order_relaxed) != 0) return;
  why_ = std::move(why);
  why_.kind = Failure::Kind::GangBroken;
  broken_.store(1, std::memory_order_release);
  doorbell().ring();
}

void RankContext::set(std::string_view key, std::string_view value) {
  exchange(true, key, value, std::chrono::seconds(30));
}

std::string RankContext::get(std::string_view key, std::chrono::milliseconds timeout) {
  return exchange(false, key, {}, timeout);
}

std::string RankContext::exchange(bool set, std::string_view key, std::string_view value,
                                  std::chrono::milliseconds timeout) {
  auto answer = detail::Object::pending(0);
  ask_(set, std::string(key), std::string(value), [answer](Outcome outcome) { answer->complete(std::move(outcome)); });
  const auto arrived =
      wait([&] { return answer->ready() || broken_.load(std::memory_order_acquire) != 0; }, deadline_after(timeout));
  if (!answer->ready() && broken_.load(std::memory_order_acquire) != 0) raise(why_);
  if (!arrived) {
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("rank {} waited {} ms for rendezvous key '{}', which no rank has set", rank_,
                                  timeout.count(), key)});
  }
  if (const auto* failure = std::get_if<Failure>(&answer->outcome())) raise(seen_by_others(*failure));
  return std::get<detail::Payload>(answer->outcome()).bytes;
}

}  // namespace troupe::process
