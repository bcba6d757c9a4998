#include "calls/channel/in_channel.hpp"

#include <utility>

#include <unistd.h>

#include "objects/doorbell.hpp"

namespace troupe::runtime {
namespace {

constexpr int kPatience = 8;

}  // namespace

InChannel::InChannel(Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      calls_(callbacks_.segment.calls(), callbacks_.segment.call_memory()),
      replies_(callbacks_.segment.replies(), callbacks_.segment.reply_memory()) {}

std::optional<InChannel::Call> InChannel::front() {
  bool revoked = false;
  auto next = next_call(revoked);
  // No reply says that there is room again where calls were passed over: what the caller keeps
  // until then waits for that.
  if (revoked) published();
  return next;
}

std::optional<InChannel::Call> InChannel::next_call(bool& revoked) {
  while (const auto record = calls_.front()) {
    RecordReader reader(*record);
    const auto head = reader.head<CallHead>();
    if (!head) {
      calls_.pop();
      continue;
    }
    // Taken once more after a stall, by who has taken it before: that is no revocation.
    std::uint32_t expected = CallHead::Queued;
    if (state_of(record->data()).compare_exchange_strong(expected, CallHead::Taken) ||
        expected == CallHead::Taken) {
      auto& control = callbacks_.segment.calls();
      return Call{*head, reader, {&control.begun, &control.finished, calls_.position() + 1}};
    }
    revoked = true;
    calls_.pop();
  }
  return std::nullopt;
}

bool InChannel::broken() {
  if (calls_.broken() && !std::exchange(told_damaged_, true) && callbacks_.damaged)
    callbacks_.damaged();
  return calls_.broken();
}

/// Replies need no order: one that finds no room takes the socket too, and an executor waits for
/// its caller only where that takes nothing either (PeerLink::write_out).
void InChannel::reply(std::uint64_t id, Outcome&& outcome, std::chrono::nanoseconds run_time) {
  auto* value = std::get_if<detail::Payload>(&outcome);
  const ReplyHead head{.id = id, .run_ns = static_cast<std::uint64_t>(run_time.count())};
  const auto bytes = value ? sizeof head + value->bytes.size() : 0;
  const bool plain = value && value->refs.empty() && !value->stored;
  auto* at = plain ? replies_.reserve(bytes) : nullptr;
  if (!at) return callbacks_.send_through_socket(id, std::move(outcome), run_time);
  std::memcpy(at, &head, sizeof head);
  std::memcpy(at + sizeof head, value->bytes.data(), value->bytes.size());
  replies_.commit();
  published();
}

void InChannel::published() {
  auto watch = replies_.seen_watch();
  // Who has just made a call mostly begins to wait for it in this moment: that is cheaper than to
  // wake its loop.
  for (int i = 0; i < kPatience && watch == ring::Watch::Loop; ++i) {
    os::relax();
    watch = replies_.seen_watch();
  }
  if (watch == ring::Watch::Active) return;
  watch = replies_.claim_wake();
  if (watch == ring::Watch::Asleep) callbacks_.caller_bell->ring();
  if (watch == ring::Watch::Loop) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(callbacks_.caller_loop.get(), &one, sizeof one);
  }
}

}  // namespace troupe::runtime
