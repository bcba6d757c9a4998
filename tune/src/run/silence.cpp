#include "run/silence.hpp"

#include <algorithm>

namespace troupe::tune {
namespace {

constexpr Seconds kShortest{60};
constexpr Seconds kUntilFirst{300};
constexpr double kTimesLongest = 10;
/// Between two calls: after more, this process stood still, and so did others perhaps.
constexpr Seconds kMostBetweenLooks{5};

}  // namespace

/// Who stood still has heard nobody meanwhile.
void SilenceWatch::leave_out_standstill(Seconds now) {
  const auto stood_still = looked_ ? now - *looked_ : Seconds(0);
  looked_ = now;
  if (stood_still <= kMostBetweenLooks) return;
  for (auto& [trial, sign] : signs_) sign.at = std::min(now, sign.at + stood_still);
}

void SilenceWatch::began(TrialId trial, Seconds now) {
  leave_out_standstill(now);
  signs_[trial] = {.at = now};
}

void SilenceWatch::reported(TrialId trial, Seconds now) {
  leave_out_standstill(now);
  const auto sign = signs_.find(trial);
  if (sign == signs_.end()) return;
  longest_ = std::max(longest_.value_or(Seconds(0)), now - sign->second.at);
  sign->second = {.at = now};
}

Seconds SilenceWatch::limit() const {
  if (limit_.count() > 0) return limit_;
  return longest_ ? std::max(kShortest, kTimesLongest * *longest_) : kUntilFirst;
}

std::vector<SilenceWatch::Silent> SilenceWatch::due(Seconds now) {
  leave_out_standstill(now);
  const auto limit = this->limit();
  std::vector<Silent> silent;
  for (auto& [trial, sign] : signs_) {
    if (sign.told || now - sign.at < limit || told_ == kMostTold) continue;
    sign.told = true;
    ++told_;
    silent.push_back({.trial = trial, .waited = now - sign.at, .longest = longest_});
  }
  return silent;
}

}  // namespace troupe::tune
