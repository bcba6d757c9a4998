#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include <troupe/tune/random.hpp>

#include "searchers/axis.hpp"

namespace troupe::tune {

/// One axis of the trials of a set: what a Parzen estimator is made from.
struct AxisSample {
  std::vector<double> coordinates = {};    ///< in the order of the trials
  std::vector<std::uint32_t> sorted = {};  ///< their indices by coordinate
};

/// The kernels of one numeric axis: a normal, truncated to [0, 1], for each trial, and the prior's
/// behind them.
class NumberKernels {
 public:
  NumberKernels(const Axis& axis, const AxisSample& sample, double narrowing);

  double draw(std::size_t kernel, Random& random) const;
  /// Adds to each kernel's entry the logarithm of its density at the coordinate; of an integer, of
  /// its probability.
  void add_log_densities(double coordinate, Eigen::Ref<Eigen::ArrayXd> to) const;

 private:
  /// `before`: the kernel with the next lower mean; itself where there is none.
  void set(std::size_t kernel, double mean, double deviation, std::size_t before);
  void add_log_masses(double low, double high, Eigen::Ref<Eigen::ArrayXd> to) const;

  const Axis* axis_;
  bool is_discrete_ = false;
  Eigen::ArrayXd means_;
  Eigen::ArrayXd deviations_;
  Eigen::ArrayXd precisions_;  // 1 / deviations_
  Eigen::ArrayXd log_scales_;  // what is added to -z^2/2
  std::vector<std::size_t>
      first_same_;  // discrete: of the kernels that are equal, the first one by mean
};

/// Those of an axis of categories: each gives its own category more than the others.
class CategoryKernels {
 public:
  CategoryKernels(const Axis& axis, const AxisSample& sample);

  double draw(std::size_t kernel, Random& random) const;
  void add_log_densities(double coordinate, Eigen::Ref<Eigen::ArrayXd> to) const;

 private:
  const Axis* axis_;
  std::vector<std::size_t> own_;  // of each kernel but the prior's
  double extra_ = 0;              // the share that each category has in each kernel, own or not
};

/// A density over some axes: the mixture of one product of kernels for each trial of a set and of
/// the prior's (TpeOptions has the rules). The axes outlive it.
class ParzenEstimator {
 public:
  /// `samples` has one for each axis, all of the same trials in order of number.
  ParzenEstimator(std::span<const Axis* const> axes, std::span<const AxisSample> samples,
                  double narrowing = 1);

  /// A coordinate for each axis; of integers and categories, what stands for the value.
  std::vector<double> draw(Random& random) const;
  double log_density(std::span<const double> point) const;

 private:
  using Kernels = std::variant<NumberKernels, CategoryKernels>;

  std::vector<Kernels> axes_;
  Eigen::ArrayXd weights_;  // of the trials, and of the prior; their sum is 1
  Eigen::ArrayXd log_weights_;
};

}  // namespace troupe::tune
