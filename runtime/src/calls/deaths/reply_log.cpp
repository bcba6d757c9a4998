#include "calls/deaths/reply_log.hpp"

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "calls/channel/record.hpp"

namespace troupe::runtime {
namespace {

/// A record of the log: EntryHead, then the bytes of a value, or FailureHead and three texts, each
/// with its length (u32) before it.
struct EntryHead {
  std::uint64_t caller = 0;
  std::uint64_t call = 0;
  std::uint64_t run_ns = 0;
  std::uint64_t failed = 0;
};
struct FailureHead {
  std::uint32_t kind = 0;
  std::int32_t signal = 0;
  std::int32_t exit_code = 0;
};

ring::Control& control_of(void* memory) { return *static_cast<ring::Control*>(memory); }

std::span<std::byte> ring_of(void* memory) {
  return {static_cast<std::byte*>(memory) + sizeof(ring::Control), ReplyLog::kRingBytes};
}

std::byte* put(std::byte* at, const auto& head) {
  std::memcpy(at, &head, sizeof head);
  return at + sizeof head;
}

std::byte* put_text(std::byte* at, std::string_view text) {
  at = put(at, static_cast<std::uint32_t>(text.size()));
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

/// nullopt: it cannot be kept.
std::optional<std::size_t> size_of(const Outcome& outcome) {
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    return sizeof(FailureHead) + 3 * sizeof(std::uint32_t) + failure->message.size() +
           failure->type.size() + failure->where.size();
  }
  const auto& value = std::get<detail::Payload>(outcome);
  if (!value.refs.empty() || value.stored) return std::nullopt;
  return value.bytes.size();
}

void put_outcome(std::byte* at, const Outcome& outcome) {
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    at = put(at, FailureHead{.kind = static_cast<std::uint32_t>(failure->kind),
                             .signal = failure->signal,
                             .exit_code = failure->exit_code});
    at = put_text(at, failure->message);
    at = put_text(at, failure->type);
    put_text(at, failure->where);
    return;
  }
  const auto& bytes = std::get<detail::Payload>(outcome).bytes;
  std::memcpy(at, bytes.data(), bytes.size());
}

std::optional<Outcome> read_outcome(RecordReader& from, bool failed) {
  if (!failed) return detail::Payload{.bytes = std::string(from.rest()), .refs = {}};
  const auto head = from.head<FailureHead>();
  const auto message = from.bytes();
  const auto type = from.bytes();
  const auto where = from.bytes();
  if (!head || !message || !type || !where) return std::nullopt;
  return Failure{.kind = static_cast<Failure::Kind>(head->kind),
                 .message = std::string(*message),
                 .type = std::string(*type),
                 .where = std::string(*where),
                 .signal = head->signal,
                 .exit_code = head->exit_code};
}

}  // namespace

ReplyLog::ReplyLog(void* memory)
    : kept_(control_of(memory), ring_of(memory)), oldest_(control_of(memory), ring_of(memory)) {}

ReplyPlace ReplyLog::keep(ProcessId caller, std::uint64_t call, const Outcome& outcome,
                          std::chrono::nanoseconds run_time) {
  const auto bytes = size_of(outcome);
  if (!bytes || *bytes > kMostBytes) return 0;
  auto* at = kept_.reserve(sizeof(EntryHead) + *bytes);
  if (!at) return 0;
  at = put(at, EntryHead{.caller = caller.value(),
                         .call = call,
                         .run_ns = static_cast<std::uint64_t>(run_time.count()),
                         .failed = std::holds_alternative<Failure>(outcome) ? 1U : 0U});
  put_outcome(at, outcome);
  return kept_.commit() + 1;
}

void ReplyLog::arrived(ProcessId caller, ReplyPlace last) {
  if (last == 0) return;
  auto& known = arrived_[caller];
  if (last <= known) return;
  known = last;
  release();
}

/// What is kept for it later is answered by nobody, which arrived() is told.
void ReplyLog::forget(ProcessId caller) {
  if (oldest_.empty()) return;
  arrived_[caller] = std::numeric_limits<ReplyPlace>::max();
  release();
}

/// The oldest ones first: those of a caller that acknowledges nothing keep the others' room, and
/// then replies go to their sockets at once. Most stand beside others of the same caller.
void ReplyLog::release() {
  ProcessId caller{};
  ReplyPlace arrived = 0;
  while (const auto record = oldest_.front()) {
    const auto head = RecordReader(*record).head<EntryHead>();
    if (!head) return;
    if (arrived == 0 || caller != ProcessId(head->caller)) {
      caller = ProcessId(head->caller);
      const auto known = arrived_.find(caller);
      arrived = known == arrived_.end() ? 0 : known->second;
    }
    if (arrived <= oldest_.position()) return;
    oldest_.pop();
  }
  arrived_.clear();
}

std::vector<KeptReply> ReplyLog::read(void* memory) {
  std::vector<KeptReply> replies;
  auto& control = control_of(memory);
  const auto head = control.head.load(std::memory_order_acquire);
  if (head % 8 != 0) return replies;
  ring::Control ended;  // which the writer's pages are not changed for
  ended.tail.store(control.tail.load(std::memory_order_acquire));
  ring::Consumer left(ended, ring_of(memory), head);
  for (; const auto record = left.front(); left.pop()) {
    RecordReader reader(*record);
    const auto entry = reader.head<EntryHead>();
    if (!entry) return replies;
    auto outcome = read_outcome(reader, entry->failed != 0);
    if (!outcome) return replies;
    replies.push_back({.caller = ProcessId(entry->caller),
                       .call = entry->call,
                       .run_time = std::chrono::nanoseconds(entry->run_ns),
                       .outcome = std::move(*outcome)});
  }
  return replies;
}

}  // namespace troupe::runtime
