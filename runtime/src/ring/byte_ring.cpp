#include "ring/byte_ring.hpp"

#include <cstring>

namespace troupe::ring {
namespace {

constexpr std::size_t kHeader = 8;
constexpr std::uint32_t kRecord = 0;
constexpr std::uint32_t kSkip = 1;

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) & ~std::uint64_t{7}; }

struct Header {
  std::uint32_t bytes;
  std::uint32_t kind;
};
static_assert(sizeof(Header) == kHeader);

void write_header(std::byte* at, Header header) { std::memcpy(at, &header, sizeof header); }

}  // namespace

std::byte* Producer::at(std::uint64_t position) const {
  return memory_.data() + (position & (memory_.size() - 1)) + kHeader;
}

std::byte* Producer::reserve(std::size_t bytes) {
  if (bytes > largest()) return nullptr;
  const auto need = kHeader + padded(bytes);
  const auto to_end = memory_.size() - (tail_ & (memory_.size() - 1));
  const auto skip = need > to_end ? to_end : 0;
  if (tail_ + skip + need - head_ > memory_.size()) {
    head_ = control_->head.load(std::memory_order_acquire);
    if (tail_ + skip + need - head_ > memory_.size()) return nullptr;
  }
  if (skip != 0)
    write_header(at(tail_) - kHeader, {static_cast<std::uint32_t>(skip - kHeader), kSkip});
  reserved_ = tail_ + skip;
  end_ = reserved_ + need;
  write_header(at(reserved_) - kHeader, {static_cast<std::uint32_t>(bytes), kRecord});
  return at(reserved_);
}

std::uint64_t Producer::commit() {
  tail_ = end_;
  // Ordered with the look at the watch that follows, against a consumer that announces its sleep
  // and then looks at the tail once more: one of the two sees the other.
  control_->tail.store(tail_, std::memory_order_seq_cst);
  return reserved_;
}

Watch Producer::seen_watch() const { return control_->watch.load(std::memory_order_seq_cst); }

Watch Producer::claim_wake() {
  if (seen_watch() == Watch::Active) return Watch::Active;
  return control_->watch.exchange(Watch::Active, std::memory_order_seq_cst);
}

bool Producer::passed(std::uint64_t position) const {
  return control_->head.load(std::memory_order_acquire) > position;
}

std::optional<std::span<std::byte>> Consumer::front() {
  while (!broken_) {
    const auto head = head_.load(std::memory_order_relaxed);
    const auto available = control_->tail.load(std::memory_order_acquire) - head;
    if (available == 0) return std::nullopt;
    const auto offset = head & (memory_.size() - 1);
    Header header;
    std::memcpy(&header, memory_.data() + offset, sizeof header);
    const auto whole = kHeader + padded(header.bytes);
    broken_ = available > memory_.size() || available % 8 != 0 || whole > available ||
              whole > memory_.size() - offset || header.kind > kSkip;
    if (broken_) break;
    next_ = head + whole;
    if (header.kind == kRecord) return memory_.subspan(offset + kHeader, header.bytes);
    pop();
  }
  return std::nullopt;
}

void Consumer::pop() {
  head_.store(next_, std::memory_order_relaxed);
  control_->head.store(next_, std::memory_order_release);
}

}  // namespace troupe::ring
