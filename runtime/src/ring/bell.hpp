#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>

#include "ring/segment.hpp"

namespace troupe::ring {

/// What the threads of one process sleep on, in memory that other processes may ring it through.
/// One futex word, so that a wait for several things at once is one system call; a ring costs
/// nothing where nobody sleeps.
///
///     sleeper: Sleeper announces -> seen = rings() -> is it there already? -> sleep(seen)
///     waker:   makes it be there -> ring(): somebody has announced? -> counts, wakes
class Bell {
 public:
  /// Throws std::bad_alloc where the system has no memory for it.
  static std::unique_ptr<Bell> create();
  /// The bell of another process; nullptr if the descriptor is none.
  static std::unique_ptr<Bell> adopt(const UniqueFd& descriptor);
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  /// What is to be noticed must be written before. Any thread, any process.
  void ring();

  class Sleeper {
   public:
    explicit Sleeper(Bell& bell) : bell_(bell) {
      bell_.words_->sleepers.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Sleeper() { bell_.words_->sleepers.fetch_sub(1, std::memory_order_release); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

   private:
    Bell& bell_;
  };
  std::uint32_t rings() const { return words_->rings.load(std::memory_order_seq_cst); }
  /// Returns at once if the bell has rung since `seen`; nullptr: without a limit. Interrupted or
  /// early returns happen.
  void sleep(std::uint32_t seen, const timespec* at_most);

  /// To be sent to other processes.
  const UniqueFd& descriptor() const { return descriptor_; }

 private:
  struct Words {
    std::atomic<std::uint32_t> rings;
    std::atomic<std::uint32_t> sleepers;
  };
  Bell(Words* words, UniqueFd descriptor) : words_(words), descriptor_(std::move(descriptor)) {}

  Words* words_;
  UniqueFd descriptor_;
};

}  // namespace troupe::ring
