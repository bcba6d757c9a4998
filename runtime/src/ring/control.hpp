#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::ring {

/// What the consumer of a ring does, and so what its producer has to do after a record. Written by
/// the consumer; taken back to Active by the producer that wakes it, so that one sleep costs one
/// wake-up.
enum class Watch : std::uint32_t {
  Active = 0,  ///< looks at the ring by itself
  Asleep = 1,  ///< sleeps on its process's bell
  Loop = 2,    ///< nobody looks; its process's loop is to be told, soon
};

/// The words of one ring that both processes see. Two lines: what the producer reads and writes for
/// each record, and what it reads only where it takes the ring for full.
struct Control {
  alignas(64) std::atomic<std::uint64_t> tail{0};  ///< bytes ever written; the producer's
  /// Beside the tail, whose line moves to the producer anyway.
  std::atomic<Watch> watch{Watch::Active};
  alignas(64) std::atomic<std::uint64_t> head{0};  ///< bytes ever read; the consumer's
  /// Of records that ask for work: one more than the position of the last one that the consumer
  /// began, and of the last one that it finished. They are there to be read after its end.
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> finished{0};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<Watch>::is_always_lock_free);

}  // namespace troupe::ring
