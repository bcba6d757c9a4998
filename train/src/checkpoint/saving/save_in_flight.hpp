#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

#include <troupe/train/checkpoint.hpp>

namespace troupe::train {

/// How far one save of one rank is. Any thread.
class SaveInFlight {
 public:
  /// `is_first`: this is rank 0, which waits for the commit, and others for their own part.
  SaveInFlight(bool is_first, std::chrono::milliseconds timeout)
      : is_first_(is_first), timeout_(timeout) {}

  /// This rank has written its part.
  void set_written();
  /// Nothing more comes of the save: it was committed, or was not.
  void set_done(Checkpoint checkpoint);
  /// The same where the ranks could not tell each other.
  void set_broken(std::exception_ptr error);

  /// As CheckpointSave's.
  Checkpoint wait();
  bool is_done() const;
  /// Returns once nothing more comes of it. Throws TimedOut, and what nobody was thrown yet.
  void wait_for_end();
  /// It is not to be committed.
  void give_up();
  /// Whether give_up() was called, or somebody's wait has timed out: what is being written may have
  /// changed since.
  bool is_given_up() const;

 private:
  bool is_over() const { return is_done_ || (!is_first_ && is_written_); }
  template <class Condition>
  void wait_for(std::unique_lock<std::mutex>& lock, Condition condition);

  const bool is_first_;
  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;  ///< guards everything below
  std::condition_variable changed_;
  bool is_written_ = false;
  bool is_done_ = false;
  Checkpoint checkpoint_;
  std::exception_ptr error_;
  bool is_thrown_ = false;
  bool is_given_up_ = false;
};

}  // namespace troupe::train
