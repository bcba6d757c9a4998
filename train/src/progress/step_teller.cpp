#include "progress/step_teller.hpp"

#include <chrono>

namespace troupe::train::detail {

using Clock = std::chrono::steady_clock;

StepTeller::StepTeller(Member& member) : member_(&member), counter_(member.gang().size()) {}

void StepTeller::tell() {
  if (member_ != nullptr) member_->progress(counter_.progress());
}

void StepTeller::on_epoch(int epoch, int epochs) {
  const std::lock_guard lock(mutex_);
  counter_.on_epoch(epoch, epochs, Clock::now());
  tell();
}

void StepTeller::on_epochs_ended(int epochs) {
  const std::lock_guard lock(mutex_);
  counter_.on_epochs_ended(epochs, Clock::now());
  tell();
}

LoaderPass StepTeller::begin_pass(int epoch) {
  const std::lock_guard lock(mutex_);
  return {.id = ++passes_, .epoch = epoch, .began = Clock::now()};
}

void StepTeller::on_batch(const LoaderPass& pass, std::int64_t done, std::int64_t total,
                          std::int64_t rows) {
  const std::lock_guard lock(mutex_);
  if (counter_.on_batch(pass, done, total, rows, Clock::now())) tell();
}

void StepTeller::on_steps(std::int64_t done, std::int64_t total, std::string_view unit) {
  const std::lock_guard lock(mutex_);
  counter_.on_steps(done, total, unit, Clock::now());
  tell();
}

void StepTeller::detach() {
  const std::lock_guard lock(mutex_);
  member_ = nullptr;
}

}  // namespace troupe::train::detail
