#include "checkpoint/saving/save_in_flight.hpp"

#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "api/bounded.hpp"

namespace troupe::train {

void SaveInFlight::set_written() {
  const std::lock_guard lock(mutex_);
  is_written_ = true;
  changed_.notify_all();
}

void SaveInFlight::set_done(Checkpoint checkpoint) {
  const std::lock_guard lock(mutex_);
  checkpoint_ = std::move(checkpoint);
  is_written_ = is_done_ = true;
  changed_.notify_all();
}

void SaveInFlight::set_broken(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  is_written_ = is_done_ = true;
  changed_.notify_all();
}

template <class Condition>
void SaveInFlight::wait_for(std::unique_lock<std::mutex>& lock, Condition condition) {
  if (changed_.wait_for(lock, bounded(timeout_), condition)) return;
  is_given_up_ = true;
  throw TimedOut(Failure{
      .kind = Failure::Kind::TimedOut,
      .message = fmt::format("a checkpoint is not written after {}: {}; ContextOptions::timeout is "
                             "how long that may take",
                             timeout_,
                             is_written_ ? "rank 0 waits for the other ranks' parts"
                                         : "this rank's files are not on the disk yet")});
}

Checkpoint SaveInFlight::wait() {
  std::unique_lock lock(mutex_);
  wait_for(lock, [this] { return is_over(); });
  if (error_) {
    is_thrown_ = true;
    std::rethrow_exception(error_);
  }
  return checkpoint_;
}

bool SaveInFlight::is_done() const {
  const std::lock_guard lock(mutex_);
  return is_over();
}

void SaveInFlight::wait_for_end() {
  std::unique_lock lock(mutex_);
  wait_for(lock, [this] { return is_done_; });
  if (error_ && !std::exchange(is_thrown_, true)) std::rethrow_exception(error_);
}

void SaveInFlight::give_up() {
  const std::lock_guard lock(mutex_);
  is_given_up_ = true;
}

bool SaveInFlight::is_given_up() const {
  const std::lock_guard lock(mutex_);
  return is_given_up_;
}

Checkpoint CheckpointSave::wait() const { return save_ ? save_->wait() : Checkpoint(); }
bool CheckpointSave::is_done() const { return !save_ || save_->is_done(); }

}  // namespace troupe::train
