#include "calls/channel/out_channel.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace troupe::runtime {
namespace {

/// The bytes of an argument that may be written into a record: a plain value that is here.
const std::string* plain_bytes(const detail::Argument& argument) {
  const auto* payload = std::get_if<detail::Payload>(&argument);
  if (!payload) {
    const auto& object = *std::get<detail::ObjectPtr>(argument);
    if (!object.ready()) return nullptr;
    payload = std::get_if<detail::Payload>(&object.outcome());
  }
  return payload && payload->refs.empty() && !payload->stored ? &payload->bytes : nullptr;
}

/// Of the whole record; nullopt: it cannot be one.
std::optional<std::size_t> record_bytes(std::span<const detail::Argument> arguments) {
  std::size_t bytes = sizeof(CallHead);
  for (const auto& argument : arguments) {
    const auto* plain = plain_bytes(argument);
    if (!plain) return std::nullopt;
    bytes += sizeof(std::uint32_t) + plain->size();
  }
  if (bytes > OutChannel::kInlineBytes) return std::nullopt;
  return bytes;
}

void write_record(std::byte* at, const CallHead& head,
                  std::span<const detail::Argument> arguments) {
  std::memcpy(at, &head, sizeof head);
  at += sizeof head;
  for (const auto& argument : arguments) {
    const auto& bytes = *plain_bytes(argument);
    const auto length = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(at, &length, sizeof length);
    std::memcpy(at + sizeof length, bytes.data(), bytes.size());
    at += sizeof length + bytes.size();
  }
}

/// Memory for what one drain() takes, kept for the next one of this thread.
template <class T>
class Batch {
 public:
  Batch() : items(std::exchange(spare(), {})) {}
  ~Batch() {
    items.clear();
    spare() = std::move(items);
  }
  std::vector<T> items;

 private:
  static std::vector<T>& spare() {
    thread_local std::vector<T> kept;
    return kept;
  }
};

constexpr std::size_t kBatch = 128;

}  // namespace

OutChannel::OutChannel(ProcessId callee, ring::Segment segment,
                       std::unique_ptr<ring::Bell> callee_bell, std::function<void()> damaged)
    : callee_(callee),
      segment_(std::move(segment)),
      callee_bell_(std::move(callee_bell)),
      damaged_(std::move(damaged)),
      calls_(segment_.calls(), segment_.call_memory()),
      replies_(segment_.replies(), segment_.reply_memory()) {}

bool OutChannel::carries(std::span<const detail::Argument> arguments) {
  return record_bytes(arguments).has_value();
}

// ---- sending ------------------------------------------------------------------------------------

std::optional<std::uint64_t> OutChannel::send(Work::Kind kind, const detail::FunctionKey& function,
                                              std::span<const detail::Argument> arguments,
                                              PendingCall& call) {
  const auto bytes = record_bytes(arguments);
  if (!bytes) return std::nullopt;
  CallHead head{.name = function.name,
                .offset = function.offset,
                .kind = static_cast<std::uint8_t>(kind),
                .arguments = static_cast<std::uint16_t>(arguments.size()),
                .called = call.called};
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    head.id = take_slot(call, false);
    wake = put(head.id, *bytes, [&](std::byte* at) { write_record(at, head, arguments); });
  }
  if (wake) callee_bell_->ring();
  return head.id;
}

std::optional<std::uint64_t> OutChannel::send_via_socket(PendingCall& call) {
  CallHead head{.via_socket = 1};
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    head.id = take_slot(call, true);
    wake = put(head.id, sizeof head, [&](std::byte* at) { write_record(at, head, {}); });
  }
  if (wake) callee_bell_->ring();
  return head.id;
}

std::uint64_t OutChannel::take_slot(PendingCall& call, bool via_socket) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const auto index = free_.back();
  free_.pop_back();
  auto& slot = slots_[index];
  slot.call = std::move(call);
  slot.use = (slot.use + 1) & 0x7fffffff;
  ++sent_;
  slot.taken = true;
  slot.via_socket = via_socket;
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  return ChannelCallId{.slot = index, .use = slot.use}.packed();
}

OutChannel::Slot* OutChannel::find(std::uint64_t id) {
  const auto direct = ChannelCallId::of(id);
  if (!ChannelCallId::is(id) || direct.slot >= slots_.size()) return nullptr;
  auto& slot = slots_[direct.slot];
  return slot.taken && slot.use == direct.use ? &slot : nullptr;
}

PendingCall OutChannel::free_slot(Slot& slot) {
  slot.taken = false;
  free_.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  return std::move(slot.call);
}

bool OutChannel::put(std::uint64_t id, std::size_t bytes, const auto& write) {
  watch_replies();
  auto& slot = *find(id);
  auto* at = overflow_.empty() ? calls_.reserve(bytes) : nullptr;
  slot.in_ring = at != nullptr;
  if (at) {
    write(at);
    slot.position = calls_.commit();
    return published();
  }
  std::vector<std::byte> record(bytes);
  write(record.data());
  slot.position = overflow_begin_ + overflow_.size();
  overflow_.emplace_back(id, std::move(record));
  overflows_.store(true, std::memory_order_relaxed);
  return flush_overflow();
}

bool OutChannel::flush_overflow() {
  bool wake = false;
  while (!overflow_.empty()) {
    auto& [id, record] = overflow_.front();
    if (id != 0) {
      auto* at = calls_.reserve(record.size());
      if (!at) break;
      std::memcpy(at, record.data(), record.size());
      auto& slot = *find(id);
      slot.in_ring = true;
      slot.position = calls_.commit();
      wake = published() || wake;
    }
    overflow_.pop_front();
    ++overflow_begin_;
  }
  overflows_.store(!overflow_.empty(), std::memory_order_relaxed);
  return wake;
}

bool OutChannel::published() { return calls_.claim_wake() != ring::Watch::Active; }

std::optional<PendingCall> OutChannel::revoke(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  auto* slot = find(id);
  if (!slot || closed_ || slot->via_socket) return std::nullopt;
  if (!slot->in_ring) {
    overflow_[slot->position - overflow_begin_] = {};
    return free_slot(*slot);
  }
  // While it has not been passed its memory is not written again: this side would do that, and
  // holds the lock.
  if (calls_.passed(slot->position)) return std::nullopt;
  std::uint32_t expected = CallHead::Queued;
  if (!state_of(calls_.at(slot->position)).compare_exchange_strong(expected, CallHead::Revoked))
    return std::nullopt;
  return free_slot(*slot);
}

void OutChannel::cancel(std::uint64_t id) {
  auto call = revoke(id);
  if (!call) return;
  auto* receiver = call->receiver;
  const auto message = fmt::format("{} was cancelled before it started", call->label);
  receiver->answered(std::move(*call),
                     Failure{.kind = Failure::Kind::Cancelled, .message = message}, {});
}

// ---- replies ------------------------------------------------------------------------------------

/// Before a call is made: somebody must see its reply.
void OutChannel::watch_replies() {
  if (waiters_ != 0 || loop_looks_.exchange(true, std::memory_order_relaxed)) return;
  replies_.set_watch(ring::Watch::Loop);
}

void OutChannel::take_replies(std::vector<Reply>& into) {
  while (into.size() < kBatch) {
    const auto record = replies_.front();
    if (!record) return;
    RecordReader reader(*record);
    const auto head = reader.head<ReplyHead>();
    if (auto* slot = head ? find(head->id) : nullptr) {
      into.push_back({.call = free_slot(*slot),
                      .value = {.bytes = std::string(reader.rest()), .refs = {}},
                      .run_time = std::chrono::nanoseconds(head->run_ns)});
    }
    replies_.pop();
  }
}

std::size_t OutChannel::drain() {
  std::size_t all = 0;
  while (!replies_.empty() || overflows_.load(std::memory_order_relaxed)) {
    Batch<Reply> batch;
    bool wake = false;
    bool damaged = false;
    {
      const std::lock_guard lock(mutex_);
      take_replies(batch.items);
      if (!overflow_.empty() && !closed_) wake = flush_overflow();
      damaged = replies_.broken() && !std::exchange(told_damaged_, true);
    }
    if (wake) callee_bell_->ring();
    if (damaged && damaged_) damaged_();
    if (batch.items.empty()) break;
    all += batch.items.size();
    for (auto& reply : batch.items) {
      auto* receiver = reply.call.receiver;
      receiver->answered(std::move(reply.call), std::move(reply.value), reply.run_time);
    }
  }
  return all;
}

void OutChannel::answer(std::uint64_t id, Outcome outcome, std::chrono::nanoseconds run_time) {
  PendingCall call;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    auto* slot = find(id);
    if (!slot) return;
    call = free_slot(*slot);
    if (!overflow_.empty() && !closed_) wake = flush_overflow();
  }
  if (wake) callee_bell_->ring();
  auto* receiver = call.receiver;
  receiver->answered(std::move(call), std::move(outcome), run_time);
}

void OutChannel::start_waiting() {
  const std::lock_guard lock(mutex_);
  ++waiters_;
  if (loop_looks_.exchange(false, std::memory_order_relaxed))
    replies_.set_watch(ring::Watch::Active);
}

void OutChannel::before_sleep() { replies_.set_watch(ring::Watch::Asleep); }

void OutChannel::stop_waiting() {
  {
    const std::lock_guard lock(mutex_);
    if (--waiters_ != 0) return;
    if (in_flight() == 0) return replies_.set_watch(ring::Watch::Active);
    watch_replies();
  }
  drain();
}

bool OutChannel::loop_turn() {
  const auto answered = drain();
  bool much = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_the_loops()) return false;
    if (in_flight() == 0) {
      loop_looks_.store(false, std::memory_order_relaxed);
      return false;
    }
    much = answered >= kMuch || sent_ - std::exchange(sent_before_turn_, sent_) >= kMuch;
    replies_.set_watch(much ? ring::Watch::Active : ring::Watch::Loop);
  }
  if (!much) drain();
  return much;
}

// ---- the end ------------------------------------------------------------------------------------

Progress OutChannel::progress(const Slot& slot, bool ended) const {
  if (!slot.in_ring) return Progress::NotBegun;
  if (!ended) return Progress::Unknown;
  if (!calls_.begun(slot.position)) return Progress::NotBegun;
  return calls_.finished(slot.position) ? Progress::Finished : Progress::UnderWay;
}

bool OutChannel::has_begun(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto* slot = find(id);
  return slot != nullptr && slot->in_ring && calls_.begun(slot->position);
}

OutChannel::Line OutChannel::line_before(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Line line;
  const auto* mine = find(id);
  if (mine == nullptr) return line;
  std::uint64_t last = 0;
  for (const auto& slot : slots_) {
    if (!slot.taken || &slot == mine) continue;
    const bool is_before =
        slot.in_ring == mine->in_ring ? slot.position < mine->position : slot.in_ring;
    if (!is_before) continue;
    ++line.before;
    const bool runs =
        slot.in_ring && calls_.begun(slot.position) && !calls_.finished(slot.position);
    if (!runs || (!line.running.empty() && slot.position < last)) continue;
    last = slot.position;
    line.running = slot.call.label;
    line.called = slot.call.called;
  }
  return line;
}

void OutChannel::close(const Failure& how, bool ended) {
  drain();  // what was answered before the end counts
  std::vector<std::pair<PendingCall, Progress>> lost;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    why_closed_ = how;
    overflow_begin_ += overflow_.size();
    overflow_.clear();
    overflows_.store(false, std::memory_order_relaxed);
    for (auto& slot : slots_) {
      if (!slot.taken) continue;
      const auto came = progress(slot, ended);
      lost.emplace_back(free_slot(slot), came);
    }
    assert(in_flight_ == 0);
  }
  for (auto& [call, came] : lost) {
    auto* receiver = call.receiver;
    receiver->lost(std::move(call), came, how);
  }
}

}  // namespace troupe::runtime
