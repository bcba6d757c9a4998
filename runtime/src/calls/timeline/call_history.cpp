#include "calls/timeline/call_history.hpp"

#include <algorithm>
#include <atomic>

namespace troupe::runtime {
namespace {

constexpr int kNameBits = 16;
constexpr int kKindBits = 8;
constexpr std::uint64_t kMostWaited = (std::uint64_t{1} << (64 - kNameBits)) - 1;
constexpr std::uint64_t kByClock = 1U << (kKindBits - 1);
constexpr std::uint64_t kFailed = 1;  // the last bit of the end, which is a tick at most

CallHistory::Kind kind_of(std::uint64_t caller_and_kind) {
  return static_cast<CallHistory::Kind>(caller_and_kind & 3);
}

}  // namespace

/// Words, so that none is ever half written. A span that is being overwritten is told by the count.
struct CallHistory::Slot {
  std::atomic<std::uint64_t> begin;
  std::atomic<std::uint64_t> end;              // 0: none
  std::atomic<std::uint64_t> name_and_waited;  // the name's id last
  std::atomic<std::uint64_t> caller_and_kind;  // the kind last
};

struct CallHistory::Memory {
  NameTable::Slot names[kNames];  // of which the last ones are used first
  NameTable::Slot role[1];
  alignas(64) std::atomic<std::uint64_t> count;  // of spans that were begun
  alignas(64) Slot slots[kSpans];                // in turn; pages cost memory once touched
};

std::size_t CallHistory::bytes() { return sizeof(Memory); }

CallHistory::CallHistory(void* memory)
    : memory_(static_cast<Memory*>(memory)),
      names_(memory_->names, kNames),
      role_(memory_->role, 1) {
  static_assert(sizeof(Slot) == 32);
}

CallHistory::Slot& CallHistory::slot(std::uint64_t index) const {
  return memory_->slots[index % kSpans];
}

// ---- the writer ---------------------------------------------------------------------------------

void CallHistory::begin(Kind kind, const void* identity, std::string_view name,
                        const Caller& caller, os::Ticks now) {
  const auto kind_bits = static_cast<std::uint64_t>(kind) | (caller.by_clock ? kByClock : 0);
  wait_ = kNone;
  call_ = append({.begin = now,
                  .end = 0,
                  .name_and_waited =
                      std::min(caller.waited, kMostWaited) << kNameBits | name_id(identity, name),
                  .caller_and_kind = caller.process.value() << kKindBits | kind_bits});
}

/// A reader that sees anything of what is written here sees the count before it, too, and takes the
/// span that was in this slot for gone.
std::uint64_t CallHistory::append(const Words& words) {
  auto& into = slot(count_);
  std::atomic_thread_fence(std::memory_order_release);
  into.begin.store(words.begin, std::memory_order_relaxed);
  into.end.store(words.end, std::memory_order_relaxed);
  into.name_and_waited.store(words.name_and_waited, std::memory_order_relaxed);
  into.caller_and_kind.store(words.caller_and_kind, std::memory_order_relaxed);
  memory_->count.store(count_ + 1, std::memory_order_release);
  return count_++;
}

void CallHistory::finish(std::uint64_t index, std::uint64_t end) {
  if (index != kNone) slot(index).end.store(end, std::memory_order_relaxed);
}

void CallHistory::end(os::Ticks now, bool failed) {
  end_wait(now);
  finish(call_, (now & ~kFailed) | (failed ? kFailed : 0));
  call_ = kNone;
  // The reply to the next call is seen after what is written here: its memory is brought meanwhile.
  __builtin_prefetch(&slot(count_), 1);
}

/// The call that waits so often that its span is the next to be overwritten begins anew, as the
/// last one of them.
void CallHistory::begin_wait(os::Ticks now) {
  if (call_ == kNone) return;
  if (count_ - call_ >= kSpans - 1) call_ = append(words_of(call_));
  wait_ = append({.begin = now,
                  .end = 0,
                  .name_and_waited = 0,
                  .caller_and_kind = static_cast<std::uint64_t>(Kind::Wait)});
}

void CallHistory::end_wait(os::Ticks now) {
  finish(wait_, now & ~kFailed);
  wait_ = kNone;
}

void CallHistory::set_role(std::string_view role) { role_.id_of(role); }

std::uint64_t CallHistory::name_id(const void* identity, std::string_view name) {
  // Functions lie at multiples of 16 at least.
  auto& known = known_[reinterpret_cast<std::uintptr_t>(identity) / 16 % known_.size()];
  if (known.identity != identity || !names_.has(known.id)) known = {identity, names_.id_of(name)};
  return known.id;
}

// ---- the reader ---------------------------------------------------------------------------------

bool CallHistory::empty() const { return memory_->count.load(std::memory_order_acquire) == 0; }

CallHistory::Words CallHistory::words_of(std::uint64_t index) const {
  const auto& from = slot(index);
  return {.begin = from.begin.load(std::memory_order_relaxed),
          .end = from.end.load(std::memory_order_relaxed),
          .name_and_waited = from.name_and_waited.load(std::memory_order_relaxed),
          .caller_and_kind = from.caller_and_kind.load(std::memory_order_relaxed)};
}

CallHistory::Span CallHistory::span_of(const Words& words) const {
  const auto kind = words.caller_and_kind & ((1U << kKindBits) - 1);
  return {.begin = words.begin,
          .end = words.end & ~kFailed,
          .waited = words.name_and_waited >> kNameBits,
          .caller = ProcessId(words.caller_and_kind >> kKindBits),
          .kind = kind_of(words.caller_and_kind),
          .failed = (words.end & kFailed) != 0,
          .by_clock = (kind & kByClock) != 0,
          .name = names_.text_of(words.name_and_waited & NameTable::kMostId)};
}

/// Of so many spans that were begun: those before it are overwritten, or just being.
std::uint64_t CallHistory::first_whole(std::uint64_t count) const {
  return count < kSpans ? 0 : count - kSpans + 1;
}

/// The writer may have come around meanwhile: what it has overwritten, or is just overwriting, by
/// the count that is read last, does not count.
CallHistory::Content CallHistory::read() const {
  Content content;
  content.role = role_.text_of(memory_->role[0].id.load(std::memory_order_acquire));
  const auto count = memory_->count.load(std::memory_order_acquire);
  const auto first = first_whole(count);
  std::vector<Words> copied;
  copied.reserve(count - first);
  for (auto index = first; index < count; ++index) copied.push_back(words_of(index));
  std::atomic_thread_fence(std::memory_order_acquire);
  const auto later = memory_->count.load(std::memory_order_relaxed);
  const auto whole = std::max(first, first_whole(later));
  content.overwritten = std::min(whole, count);
  for (auto index = whole; index < count; ++index)
    content.spans.push_back(span_of(copied[index - first]));
  return content;
}

CallHistory::Content CallHistory::read_running() const {
  Content content;
  content.role = role_.text_of(memory_->role[0].id.load(std::memory_order_acquire));
  const auto count = memory_->count.load(std::memory_order_acquire);
  if (count == 0) return content;
  const auto is_wait = [](const Words& words) {
    return kind_of(words.caller_and_kind) == Kind::Wait;
  };
  auto index = count - 1;
  const auto last = words_of(index);
  auto call = last;
  while (is_wait(call) && index > first_whole(count)) call = words_of(--index);
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool is_whole = index >= first_whole(memory_->count.load(std::memory_order_relaxed));
  if (!is_whole || is_wait(call) || call.end != 0) return content;
  content.spans.push_back(span_of(call));
  if (is_wait(last) && last.end == 0) content.spans.push_back(span_of(last));
  return content;
}

}  // namespace troupe::runtime
