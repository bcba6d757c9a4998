#include "progress/step_counter.hpp"

#include <algorithm>
#include <string>

namespace troupe::train {
namespace {

double seconds_between(StepCounter::Time from, StepCounter::Time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

void StepCounter::begin_epoch(int epoch) {
  progress_.epoch = epoch + 1;
  progress_.ended_epochs = epoch;
  progress_.done = 0;
  has_begun_ = false;
  pass_.reset();
}

void StepCounter::end_epoch(Time now) {
  if (!epoch_began_) return;
  ++progress_.timed_epochs;
  progress_.epochs_s += seconds_between(*epoch_began_, now);
  epoch_began_.reset();
}

void StepCounter::on_epoch(int epoch, int epochs, Time now) {
  end_epoch(now);
  epoch_began_ = now;
  has_epochs_ = true;
  progress_.epochs = epochs;
  begin_epoch(epoch);
}

void StepCounter::on_epochs_ended(int epochs, Time now) {
  end_epoch(now);
  progress_.epochs = epochs;
  progress_.ended_epochs = epochs;
}

bool StepCounter::counts(const detail::LoaderPass& pass) {
  if (says_steps_) return false;
  if (!has_epochs_ && pass.epoch + 1 > progress_.epoch) begin_epoch(pass.epoch);
  if (!pass_) pass_ = pass.id;
  return *pass_ == pass.id;
}

bool StepCounter::on_batch(const detail::LoaderPass& pass, std::int64_t done, std::int64_t total,
                           std::int64_t rows, Time now) {
  if (!counts(pass)) return false;
  begin_steps(pass.began);
  progress_.done = done;
  progress_.total = total;
  progress_.unit = "steps";
  add_steps(1, rows * ranks_, now);
  return true;
}

void StepCounter::on_steps(std::int64_t done, std::int64_t total, std::string_view unit, Time now) {
  if (!says_steps_) progress_.timed_rows = 0;
  if (!says_steps_ || done < progress_.done) has_begun_ = false;
  says_steps_ = true;
  const auto more = done - progress_.done;
  progress_.done = done;
  progress_.total = total;
  progress_.unit = unit;
  if (!has_begun_) {
    begin_steps(now);
  } else if (more > 0) {
    add_steps(more, 0, now);
  }
}

void StepCounter::begin_steps(Time began) {
  if (has_begun_) return;
  has_begun_ = true;
  if (step_ended_) {
    ++progress_.gaps;
    progress_.gaps_s += seconds_between(*step_ended_, began);
  }
  step_ended_ = began;
}

void StepCounter::add_steps(std::int64_t steps, std::int64_t rows, Time now) {
  if (!is_first_step_) {
    progress_.timed_steps += steps;
    progress_.timed_rows += rows;
    progress_.steps_s += seconds_between(*step_ended_, now);
  }
  is_first_step_ = false;
  step_ended_ = now;
}

}  // namespace troupe::train
