#include "values/dominant_shares.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::scheduler {
namespace {

constexpr double kRounding = 1e-9;
constexpr int kRanksPerDoubling = 8;
constexpr int kLeastExponent = -20;

/// Eight from one share to its double, whatever the size of the cluster; less than a millionth of
/// it counts as nothing.
std::uint32_t rank_of(double share) {
  int exponent = 0;
  const auto fraction = std::frexp(share, &exponent);  // from 0.5 to 1
  if (share <= 0 || exponent <= kLeastExponent) return 0;
  return static_cast<std::uint32_t>((exponent - kLeastExponent + 2 * fraction - 1) *
                                    kRanksPerDoubling);
}

double part_of(Amount part, Amount all) {
  return all.is_zero() ? 0 : static_cast<double>(part.ticks()) / static_cast<double>(all.ticks());
}

}  // namespace

void DominantShares::set_total(const Resources& total) {
  total_ = total;
  part_of_a_cpu_tick_ = part_of(Amount::units(1.0 / Amount::kPerUnit), total.cpu());
}

void DominantShares::start(DominantShare& share, double weight, TimePoint now) const {
  share = {};
  if (std::isfinite(weight) && weight > 0) share.weight_ = weight;
  share.per_weight_ = 1 / share.weight_;
  share.current_since_ = now;
}

double DominantShares::dominant_part(const Resources& held) const {
  double most = 0;
  for (const auto& [name, amount] : held.entries())
    most = std::max(most, part_of(amount, total_.of(name)));
  return most;
}

std::optional<DominantShares::Review> DominantShares::begin_review(TimePoint now) {
  const auto passed = static_cast<double>((now - reviewed_at_).count());
  if (passed <= 0) return std::nullopt;
  reviewed_at_ = now;
  return Review{passed, 1 - std::exp(-passed / static_cast<double>(window_.count()))};
}

bool DominantShares::review(DominantShare& share, const Review& review, TimePoint now) const {
  measure(share, now);
  const auto lately = std::exchange(share.share_time_, 0) / review.passed;
  share.average_ += (lately - share.average_) * review.news;
  const auto rank = rank_of(share.average_);
  return std::exchange(share.rank_, rank) != rank;
}

DominantShares::Step DominantShares::step_of(const DominantShare& share, const Resources& coming,
                                             const Resources& gets) const {
  auto held = share.used_;
  held += coming;
  const auto from = of(share, held);
  held += gets;
  return {&share, from, of(share, held)};
}

/// Whether it has had more for a while than a job that is to take a step, and has more now.
bool DominantShares::is_ahead(const DominantShare& holder, const Step& step) const {
  return holder.has_had_more_than(*step.share) && kept(holder) > step.from + kRounding;
}

bool DominantShares::gives_way(const DominantShare& holder, const Resources& gives,
                               const Step& step) const {
  if (&holder == step.share || step.share->has_had_more_than(holder)) return false;
  if (is_ahead(holder, step)) return true;
  if (kept(holder) + kRounding < step.to) return false;
  return of(holder, holder.used_.without(holder.returning_).without(gives)) + kRounding >= step.to;
}

std::optional<std::string> DominantShares::broken_invariant(const DominantShare& share) const {
  if (!share.used_.covers(share.returning_)) return "more is returning than is used";
  if (of(share, share.used_) != share.current_) return "the current share is not that of its use";
  if (!(share.average_ >= 0) || rank_of(share.average_) != share.rank_)
    return "the rank is not that of the average share";
  return std::nullopt;
}

void Foremost::add(const DominantShares& shares, const DominantShare& share) {
  if (share_ == nullptr || share.rank() > share_->rank()) share_ = &share;
  kept_ = std::max(kept_, shares.kept(share));
}

}  // namespace troupe::scheduler
