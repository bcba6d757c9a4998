#include "growth/growth.hpp"

namespace troupe::launch {

Growth::Duration Growth::step() const {
  auto step = std::min<Duration>(had_.wait / 6, kLongestStep);
  for (int look = 0; look < silent_looks_ && step < kLongestSilentStep; ++look) step *= 2;
  return silent_looks_ == 0 ? step : std::min<Duration>(step, kLongestSilentStep);
}

void Growth::on_formed(int ranks) {
  if (goal_ > 0 && ranks > had_.most) had_.wait = after_;
  if (goal_ > 0 && ranks <= had_.ranks) double_wait();
  if (ranks != had_.ranks) {
    had_.vain = 0;
  } else if (goal_ > 0) {
    had_.vain = goal_;
  }
  goal_ = 0;
  had_.ranks = ranks;
  had_.most = std::max(had_.most, ranks);
  silent_looks_ = 0;
  watch_.reset();
  if (ranks < most_) watch_.emplace(ranks, most_, 2 * step());
}

void Growth::on_look(const std::optional<RoomSeen>& seen, Duration passed) {
  if (!is_watching()) return;
  silent_looks_ = seen ? 0 : silent_looks_ + 1;
  if (seen && seen->ranks <= had_.ranks) had_.vain = 0;
  if (!seen || std::min(seen->ranks, most_) <= had_.vain) return watch_->miss();
  watch_->see(*seen, passed);
  if (watch_->has_room() && watch_->lasted() >= had_.wait) goal_ = watch_->ranks();
}

void Growth::on_ended(bool for_goal) {
  watch_.reset();
  if (for_goal) {
    had_before_ = had_;
    goal_before_ = goal_;
  } else {
    goal_ = 0;
  }
}

void Growth::on_not_started() {
  had_ = had_before_;
  had_.vain = goal_before_;
  double_wait();
  goal_ = 0;
  watch_.reset();
}

}  // namespace troupe::launch
