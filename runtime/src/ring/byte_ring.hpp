#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ring/control.hpp"

namespace troupe::ring {

/// Records of bytes from one thread of one process to one thread of another, through memory that
/// both have mapped. No lock: each side owns one end and reads the other's word. A record is
/// contiguous and begins at a multiple of 8:
///
///     | bytes u32 | kind u32 | bytes, padded to 8 |      kind 1: nothing up to the end of the memory
///
/// The capacity is a power of two. Positions count bytes for ever, so a full ring and an empty one
/// differ.
class Producer {
 public:
  Producer(Control& control, std::span<std::byte> memory) : control_(&control), memory_(memory) {}

  /// The largest record that always fits into an empty ring.
  std::size_t largest() const { return memory_.size() / 2 - 16; }
  /// Where a record of so many bytes may be written; nullptr while there is no room. Nothing is
  /// visible before commit().
  std::byte* reserve(std::size_t bytes);
  /// Publishes the reserved record. -> its position, which revoke() of its writer may look at while
  /// !passed(position).
  std::uint64_t commit();
  /// After commit(): what the consumer does. A consumer that is about to sleep and this one see
  /// each other.
  Watch seen_watch() const;
  /// Likewise; it has been set back to Active, and whoever got something else here has to wake it.
  Watch claim_wake();
  /// True once the consumer has taken the record at this position.
  bool passed(std::uint64_t position) const;
  /// True once the consumer has begun, or finished, what the record at this position asks for.
  bool begun(std::uint64_t position) const {
    return control_->begun.load(std::memory_order_acquire) > position;
  }
  bool finished(std::uint64_t position) const {
    return control_->finished.load(std::memory_order_acquire) > position;
  }
  /// The record at a position that has not been passed. Only for words that both sides know to be
  /// atomic.
  std::byte* at(std::uint64_t position) const;

 private:
  Control* control_;
  std::span<std::byte> memory_;
  std::uint64_t tail_ = 0;      // committed
  std::uint64_t head_ = 0;      // as last seen
  std::uint64_t reserved_ = 0;  // where the reserved record begins
  std::uint64_t end_ = 0;       // and ends
};

/// What stands in a record is copied before it is believed: the other process may be broken, or
/// hostile.
class Consumer {
 public:
  /// `head`: where it begins, a multiple of 8.
  Consumer(Control& control, std::span<std::byte> memory, std::uint64_t head = 0)
      : control_(&control), memory_(memory), head_(head) {}

  /// The next record, until pop(). nullopt: there is none, or broken().
  std::optional<std::span<std::byte>> front();
  void pop();
  /// Of the front: where its producer has put it.
  std::uint64_t position() const { return head_.load(std::memory_order_relaxed); }
  /// Without any check: is there something to look at? Any thread of the consumer's process.
  bool empty() const {
    return control_->tail.load(std::memory_order_seq_cst) == head_.load(std::memory_order_relaxed);
  }
  /// The other side has written what no producer writes. For good.
  bool broken() const { return broken_; }

  /// Says what this side does from now on; look at the ring once more after anything but Active.
  void set_watch(Watch watch) { control_->watch.store(watch, std::memory_order_seq_cst); }
  Watch watch() const { return control_->watch.load(std::memory_order_relaxed); }

 private:
  Control* control_;
  std::span<std::byte> memory_;
  // This side's own word for it: what both see may be overwritten.
  std::atomic<std::uint64_t> head_;
  std::uint64_t next_ = 0;  // where the record after the front begins
  bool broken_ = false;
};

}  // namespace troupe::ring
