#include "calls/output/label_history.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

namespace troupe::runtime {
namespace {

/// A change is one word, so that no reader sees half of one: the position, and the label's id.
constexpr int kIdBits = 16;
constexpr std::uint64_t kMostId = (std::uint64_t{1} << kIdBits) - 1;

std::uint64_t pack(std::uint64_t position, std::uint64_t id) { return position << kIdBits | id; }
std::uint64_t position_in(std::uint64_t change) { return change >> kIdBits; }
std::uint64_t id_in(std::uint64_t change) { return change & kMostId; }

}  // namespace

struct LabelHistory::Memory {
  /// The text is that of this id. It changes with the id at zero.
  struct Name {
    std::atomic<std::uint64_t> id;
    char text[kMostLabelBytes + 1];  // ends with a zero
  };

  std::atomic<std::uint64_t> count;  // of changes, those included that were overwritten
  Name names[kLabels];
  std::atomic<std::uint64_t> changes[kChanges];  // in turn; pages cost memory once touched

  std::atomic<std::uint64_t>& change(std::uint64_t index) { return changes[index % kChanges]; }
};

std::size_t LabelHistory::bytes() { return sizeof(Memory); }

/// Where nothing was printed since the last change, that change never mattered: it is replaced, or
/// taken back where the label before it goes on. The next change is then at a later position, so two
/// are never taken back in a row.
void LabelHistory::change(std::string_view label, std::uint64_t position) {
  const auto id = id_of(label.substr(0, kMostLabelBytes));
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

/// A label that is not known takes the slot of the one that was named first.
std::uint64_t LabelHistory::id_of(std::string_view label) {
  const auto found = std::ranges::find(known_, label);
  if (found != known_.end())
    return memory_->names[found - known_.begin()].id.load(std::memory_order_relaxed);
  last_id_ = last_id_ == kMostId ? 1 : last_id_ + 1;
  const auto slot = last_id_ % kLabels;
  known_.resize(std::max<std::size_t>(known_.size(), slot + 1));
  known_[slot] = label;
  auto& name = memory_->names[slot];
  name.id.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  name.text[label.copy(name.text, kMostLabelBytes)] = '\0';
  name.id.store(last_id_, std::memory_order_release);
  return last_id_;
}

std::string LabelHistory::label_of(std::uint64_t id) const {
  const auto& name = memory_->names[id % kLabels];
  if (id == 0 || name.id.load(std::memory_order_acquire) != id) return {};
  std::string label(name.text, ::strnlen(name.text, kMostLabelBytes));
  std::atomic_thread_fence(std::memory_order_acquire);
  if (name.id.load(std::memory_order_relaxed) != id) label.clear();
  return label;
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
    spans.push_back({.begin = next, .label = label_of(id_in(change))});
  }
  std::ranges::reverse(spans);
  return spans;
}

}  // namespace troupe::runtime
