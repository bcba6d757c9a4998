#include "gangs/rendezvous_table.hpp"

#include <utility>

#include <fmt/format.h>

#include "api/bounded.hpp"

namespace troupe::runtime {
namespace {

using Action = RendezvousRequest::Action;

Failure refusal(std::string message) {
  return {.kind = Failure::Kind::Refused, .message = std::move(message)};
}
Outcome as_outcome(std::string bytes) {
  return detail::Payload{.bytes = std::move(bytes), .refs = {}};
}

/// The note belongs to the last step: who waited for an earlier one learns that it has been.
std::string note_for(std::uint64_t wanted, std::uint64_t count, const std::string& note) {
  return wanted == count ? note : std::string();
}

}  // namespace

void RendezvousTable::ask(GangId gang, RendezvousRequest request, Answer answer, TimePoint now) {
  auto& slots = gangs_[gang];
  if (request.action == Action::Forget) {
    forget(slots, request.key);
    return answer(as_outcome({}));
  }
  if (request.value.size() > kLargestValue) {
    return answer(refusal(fmt::format("rendezvous key '{}': {} bytes; at most {} fit", request.key,
                                      request.value.size(), kLargestValue)));
  }
  if (slots.size() >= kMostKeys && !slots.contains(request.key)) {
    return answer(refusal(
        fmt::format("the rendezvous of this gang holds {} keys, which is its limit", kMostKeys)));
  }
  auto& slot = slots[request.key];
  switch (request.action) {
    case Action::Set:
      return set(slot, std::move(request), answer);
    case Action::Get:
      return get(slot, request, std::move(answer), now);
    case Action::Advance:
      return advance(slot, std::move(request), answer);
    case Action::Await:
      return await(slot, request, std::move(answer), now);
    case Action::Forget:
      return;
  }
  answer(refusal(fmt::format("a rendezvous knows no action {}", static_cast<int>(request.action))));
}

void RendezvousTable::set(Slot& slot, RendezvousRequest request, const Answer& answer) {
  if (slot.is_set && slot.value != request.value) {
    return answer(refusal(
        fmt::format("rendezvous key '{}' has been set to another value before", request.key)));
  }
  slot.is_set = true;
  slot.value = std::move(request.value);
  for (auto& wait : std::exchange(slot.waiting, {})) wait.answer(as_outcome(slot.value));
  answer(as_outcome({}));
}

void RendezvousTable::get(Slot& slot, const RendezvousRequest& request, Answer answer,
                          TimePoint now) {
  if (slot.is_set) return answer(as_outcome(slot.value));
  add_wait(slot, request, std::move(answer), now);
}

void RendezvousTable::advance(Slot& slot, RendezvousRequest request, const Answer& answer) {
  if (request.count < slot.count) {
    return answer(refusal(
        fmt::format("rendezvous counter '{}' is at {} already, and only grows: {} comes too late",
                    request.key, slot.count, request.count)));
  }
  slot.count = request.count;
  slot.value = std::move(request.value);
  std::vector<Wait> later;
  std::vector<Wait> reached;
  for (auto& wait : slot.waiting)
    (wait.count <= slot.count ? reached : later).push_back(std::move(wait));
  slot.waiting = std::move(later);
  for (auto& wait : reached) wait.answer(as_outcome(note_for(wait.count, slot.count, slot.value)));
  answer(as_outcome({}));
}

void RendezvousTable::await(Slot& slot, const RendezvousRequest& request, Answer answer,
                            TimePoint now) {
  if (request.count <= slot.count)
    return answer(as_outcome(note_for(request.count, slot.count, slot.value)));
  add_wait(slot, request, std::move(answer), now);
}

/// Those whose time is over have gone, and ask anew where they still wait.
void RendezvousTable::add_wait(Slot& slot, const RendezvousRequest& request, Answer answer,
                               TimePoint now) {
  std::erase_if(slot.waiting, [now](const Wait& wait) {
    if (wait.until >= now) return false;
    wait.answer(Failure{.kind = Failure::Kind::TimedOut, .message = "it was not there in time"});
    return true;
  });
  slot.waiting.push_back({.count = request.count,
                          .until = now + bounded(request.timeout),
                          .answer = std::move(answer)});
}

void RendezvousTable::forget(Slots& slots, const std::string& prefix) {
  auto place = slots.lower_bound(prefix);
  while (place != slots.end() && place->first.starts_with(prefix)) place = slots.erase(place);
}

std::size_t RendezvousTable::keys(GangId gang) const {
  const auto found = gangs_.find(gang);
  return found == gangs_.end() ? 0 : found->second.size();
}

std::size_t RendezvousTable::waiting(GangId gang) const {
  const auto found = gangs_.find(gang);
  std::size_t all = 0;
  if (found != gangs_.end()) {
    for (const auto& [key, slot] : found->second) all += slot.waiting.size();
  }
  return all;
}

}  // namespace troupe::runtime
