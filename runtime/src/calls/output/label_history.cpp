#include "calls/output/label_history.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

namespace troupe::runtime {
namespace {

/// A change is one word, so that no reader sees half of one: the position, and the label's id.
constexpr int kIdBits = 16;

std::uint64_t pack(std::uint64_t position, std::uint64_t id) { return position << kIdBits | id; }
std::uint64_t position_in(std::uint64_t change) { return change >> kIdBits; }
std::uint64_t id_in(std::uint64_t change) { return change & NameTable::kMostId; }

}  // namespace

struct LabelHistory::Memory {
  NameTable::Slot names[kLabels];                // of which the last ones are used first
  std::atomic<std::uint64_t> count;              // of changes, those included that were overwritten
  std::atomic<std::uint64_t> changes[kChanges];  // in turn; pages cost memory once touched

  std::atomic<std::uint64_t>& change(std::uint64_t index) { return changes[index % kChanges]; }
};

std::size_t LabelHistory::bytes() { return sizeof(Memory); }

LabelHistory::LabelHistory(void* memory)
    : memory_(static_cast<Memory*>(memory)), names_(memory_->names, kLabels) {}

/// Where nothing was printed since the last change, that change never mattered: it is replaced, or
/// taken back where the label before it goes on. The next change is then at a later position, so two
/// are never taken back in a row.
void LabelHistory::change(std::string_view label, std::uint64_t position) {
  const auto id = names_.id_of(label);
  const auto count = memory_->count.load(std::memory_order_relaxed);
  const auto at = [&](std::uint64_t back) {
    return memory_->change(count - back).load(std::memory_order_relaxed);
  };
  if (count == 0 || position > position_in(at(1))) {
    if (count > 0 && id_in(at(1)) == id) return;
    memory_->change(count).store(pack(position, id), std::memory_order_release);
    memory_->count.store(count + 1, std::memory_order_release);
  } else if (count > 1 && id_in(at(2)) == id) {
    memory_->count.store(count - 1, std::memory_order_release);
  } else {
    memory_->change(count - 1).store(pack(position_in(at(1)), id), std::memory_order_release);
  }
}

/// From the last change back. A change that was overwritten meanwhile is at a later position than
/// those that were made before it.
std::vector<LabelHistory::Span> LabelHistory::since(std::uint64_t position) const {
  std::vector<Span> spans;
  const auto count = memory_->count.load(std::memory_order_acquire);
  auto next = std::numeric_limits<std::uint64_t>::max();
  for (auto at = count; at > 0 && count - at < kChanges && next > position; --at) {
    const auto change = memory_->change(at - 1).load(std::memory_order_acquire);
    if (position_in(change) >= next) break;
    next = position_in(change);
    spans.push_back({.begin = next, .label = names_.text_of(id_in(change))});
  }
  std::ranges::reverse(spans);
  return spans;
}

}  // namespace troupe::runtime
