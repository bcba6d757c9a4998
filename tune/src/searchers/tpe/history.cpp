#include "searchers/tpe/history.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>
#include <utility>

namespace troupe::tune {

std::size_t good_count(std::size_t finished, double gamma, std::size_t most) {
  const auto part = std::ceil(gamma * static_cast<double>(finished));
  return std::min(static_cast<std::size_t>(part), most);
}

void TpeHistory::begin(std::vector<double> point) {
  assert(point.size() == sorted_.size());
  const auto number = static_cast<Number>(trials_.size());
  trials_.push_back({.point = std::move(point)});
  for (std::size_t axis = 0; axis < sorted_.size(); ++axis) {
    const auto coordinate = [&](Number trial) { return trials_[trial].point[axis]; };
    auto& sorted = sorted_[axis];
    sorted.insert(std::ranges::upper_bound(sorted, coordinate(number), {}, coordinate), number);
  }
}

bool TpeHistory::ranks_before(Number left, Number right) const {
  const auto key = [&](Number number) {
    const auto& trial = trials_[number];
    const auto length = trial.standing == TpeStanding::Stopped ? -trial.t : 0;
    return std::tuple(trial.standing, length, trial.loss, number);
  };
  return key(left) < key(right);
}

void TpeHistory::end(TrialId trial, TpeStanding standing, double loss, std::int64_t t) {
  assert(trial < trials_.size() && trials_[trial].standing == TpeStanding::Running);
  const auto number = static_cast<Number>(trial);
  trials_[number].standing = standing;
  trials_[number].loss = standing == TpeStanding::Failed ? 0 : loss;
  trials_[number].t = t;
  const auto before = [&](Number left, Number right) { return ranks_before(left, right); };
  ranked_.insert(std::ranges::upper_bound(ranked_, number, before), number);
}

TpeHistory::Split TpeHistory::split(std::size_t good, bool running_are_bad) const {
  Split split;
  std::vector<bool> is_good(trials_.size());
  for (const auto number : ranked_) {
    if (split.good.size() == good || trials_[number].standing == TpeStanding::Failed) break;
    split.good.push_back(number);
    is_good[number] = true;
  }
  std::ranges::sort(split.good);
  for (Number number = 0; number < trials_.size(); ++number) {
    const bool counts = running_are_bad || trials_[number].standing != TpeStanding::Running;
    if (counts && !is_good[number]) split.bad.push_back(number);
  }
  return split;
}

}  // namespace troupe::tune
