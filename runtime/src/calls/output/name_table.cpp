#include "calls/output/name_table.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::runtime {

std::uint64_t NameTable::id_of(std::string_view text) {
  text = text.substr(0, kMostBytes);
  const auto found = std::ranges::find(known_, text);
  if (found != known_.end())
    return slot_of(static_cast<std::uint64_t>(found - known_.begin()))
        .id.load(std::memory_order_relaxed);
  last_id_ = last_id_ == kMostId ? 1 : last_id_ + 1;
  const auto index = last_id_ % count_;
  known_.resize(std::max<std::size_t>(known_.size(), index + 1));
  known_[index] = text;
  auto& slot = slot_of(index);
  slot.id.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.text[text.copy(slot.text, kMostBytes)] = '\0';
  slot.id.store(last_id_, std::memory_order_release);
  return last_id_;
}

std::string NameTable::text_of(std::uint64_t id) const {
  const auto& slot = slot_of(id);
  if (id == 0 || slot.id.load(std::memory_order_acquire) != id) return {};
  std::string text(slot.text, ::strnlen(slot.text, kMostBytes));
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.id.load(std::memory_order_relaxed) != id) text.clear();
  return text;
}

}  // namespace troupe::runtime
