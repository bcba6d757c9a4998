#include "searchers/tpe/parzen.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "searchers/normal.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kNewest = 25;  // trials of a set that have the full weight

Eigen::ArrayXd weights_of(std::size_t trials) {
  Eigen::ArrayXd weights = Eigen::ArrayXd::Ones(static_cast<Eigen::Index>(trials + 1));
  if (trials > kNewest) {
    const auto old = static_cast<Eigen::Index>(trials - kNewest);
    const double lowest = 1 / static_cast<double>(trials);
    const double step = old > 1 ? (1 - lowest) / static_cast<double>(old - 1) : 0;
    for (Eigen::Index i = 0; i < old; ++i) weights[i] = lowest + step * static_cast<double>(i);
  }
  return weights / weights.sum();
}

/// Most kernels are far away: what is too small to change the sum costs no exponential.
double log_sum_exp(const Eigen::ArrayXd& logs) {
  constexpr double negligible = -45;  // e^-45 is 3e-20
  const double largest = logs.maxCoeff();
  double sum = 0;
  for (const double each : logs) {
    if (each - largest > negligible) sum += std::exp(each - largest);
  }
  return largest + std::log(sum);
}

/// The larger of the gaps to the two neighbours; of the first and the last, to the only one; of a
/// single one, to the farther end of the range.
double gap_at(const AxisSample& sample, std::size_t at) {
  const auto mean = [&](std::size_t place) { return sample.coordinates[sample.sorted[place]]; };
  const bool is_first = at == 0, is_last = at + 1 == sample.sorted.size();
  if (is_first && is_last) return std::max(mean(at), 1 - mean(at));
  const double below = is_first ? 0 : mean(at) - mean(at - 1);
  const double above = is_last ? 0 : mean(at + 1) - mean(at);
  return std::max(below, above);
}

}  // namespace

// ---- numbers ------------------------------------------------------------------------------------

NumberKernels::NumberKernels(const Axis& axis, const AxisSample& sample, double narrowing)
    : axis_{&axis} {
  const auto trials = sample.coordinates.size();
  const auto kernels = static_cast<Eigen::Index>(trials + 1);
  means_.resize(kernels);
  deviations_.resize(kernels);
  precisions_.resize(kernels);
  log_scales_.resize(kernels);
  const double narrowest = 1 / std::min(100.0, static_cast<double>(trials + 2));
  // A cell much narrower than every kernel has the density of its middle.
  is_discrete_ = axis.kind() == Axis::Kind::Integer && axis.values() * narrowest < 1000;
  if (is_discrete_) first_same_.resize(trials + 1);
  for (std::size_t at = 0; at < trials; ++at) {
    const auto trial = sample.sorted[at];
    const double width = std::clamp(gap_at(sample, at) / narrowing, narrowest, 1.0);
    set(trial, sample.coordinates[trial], width, at == 0 ? trial : sample.sorted[at - 1]);
  }
  set(trials, 0.5, 1, trials);
}

void NumberKernels::set(std::size_t kernel, double mean, double deviation, std::size_t before) {
  const auto index = static_cast<Eigen::Index>(kernel), other = static_cast<Eigen::Index>(before);
  means_[index] = mean;
  deviations_[index] = deviation;
  precisions_[index] = 1 / deviation;
  log_scales_[index] = -normal_log_mass(-mean / deviation, (1 - mean) / deviation);
  if (!is_discrete_) {
    log_scales_[index] += normal_log_density(0) - std::log(deviation);
    return;
  }
  const bool is_same = kernel != before && means_[other] == mean && deviations_[other] == deviation;
  first_same_[kernel] = is_same ? first_same_[before] : kernel;
}

double NumberKernels::draw(std::size_t kernel, Random& random) const {
  const auto index = static_cast<Eigen::Index>(kernel);
  return axis_->settled(draw_truncated_normal(random, means_[index], deviations_[index], 0, 1));
}

void NumberKernels::add_log_masses(double low, double high, Eigen::Ref<Eigen::ArrayXd> to) const {
  std::vector<double> log_masses(first_same_.size());
  const auto log_mass = [&](std::size_t kernel) {
    const auto index = static_cast<Eigen::Index>(kernel);
    const double mean = means_[index], deviation = deviations_[index];
    return normal_log_mass((low - mean) / deviation, (high - mean) / deviation) +
           log_scales_[index];
  };
  for (std::size_t kernel = 0; kernel < first_same_.size(); ++kernel) {
    if (first_same_[kernel] == kernel) log_masses[kernel] = log_mass(kernel);
  }
  for (std::size_t kernel = 0; kernel < first_same_.size(); ++kernel)
    to[static_cast<Eigen::Index>(kernel)] += log_masses[first_same_[kernel]];
}

void NumberKernels::add_log_densities(double coordinate, Eigen::Ref<Eigen::ArrayXd> to) const {
  const auto [low, high] = axis_->cell(coordinate);
  if (is_discrete_) return add_log_masses(low, high, to);
  to += log_scales_ - 0.5 * ((coordinate - means_) * precisions_).square();
  if (axis_->kind() == Axis::Kind::Integer) to += std::log(high - low);
}

// ---- categories ---------------------------------------------------------------------------------

CategoryKernels::CategoryKernels(const Axis& axis, const AxisSample& sample)
    : axis_{&axis}, extra_{1 / static_cast<double>(sample.coordinates.size() + 1)} {
  for (const double coordinate : sample.coordinates) own_.push_back(axis.category_at(coordinate));
}

double CategoryKernels::draw(std::size_t kernel, Random& random) const {
  const double total = 1 + axis_->values() * extra_;
  const bool is_own = kernel < own_.size() && random.unit() * total < 1;
  const auto category =
      is_own ? own_[kernel] : random.below(static_cast<std::uint64_t>(axis_->values()));
  return axis_->coordinate_of_category(category);
}

void CategoryKernels::add_log_densities(double coordinate, Eigen::Ref<Eigen::ArrayXd> to) const {
  const auto category = axis_->category_at(coordinate);
  const double total = 1 + axis_->values() * extra_;
  const double own = std::log((1 + extra_) / total), other = std::log(extra_ / total);
  for (std::size_t kernel = 0; kernel < own_.size(); ++kernel)
    to[static_cast<Eigen::Index>(kernel)] += own_[kernel] == category ? own : other;
  to[static_cast<Eigen::Index>(own_.size())] -= std::log(axis_->values());
}

// ---- the mixture --------------------------------------------------------------------------------

ParzenEstimator::ParzenEstimator(std::span<const Axis* const> axes,
                                 std::span<const AxisSample> samples, double narrowing) {
  assert(!axes.empty() && axes.size() == samples.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i]->is_number())
      axes_.emplace_back(NumberKernels(*axes[i], samples[i], narrowing));
    else
      axes_.emplace_back(CategoryKernels(*axes[i], samples[i]));
  }
  weights_ = weights_of(samples.front().coordinates.size());
  log_weights_ = weights_.log();
}

std::vector<double> ParzenEstimator::draw(Random& random) const {
  double left = random.unit();
  Eigen::Index kernel = 0;
  while (kernel + 1 < weights_.size() && left >= weights_[kernel]) left -= weights_[kernel++];
  std::vector<double> point;
  for (const auto& kernels : axes_) {
    point.push_back(std::visit(
        [&](const auto& axis) { return axis.draw(static_cast<std::size_t>(kernel), random); },
        kernels));
  }
  return point;
}

double ParzenEstimator::log_density(std::span<const double> point) const {
  Eigen::ArrayXd logs = log_weights_;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    std::visit([&](const auto& axis) { axis.add_log_densities(point[i], logs); }, axes_[i]);
  return log_sum_exp(logs);
}

}  // namespace troupe::tune
