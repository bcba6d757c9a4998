#include "searchers/bohb/density.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "searchers/normal.hpp"

namespace troupe::tune {
namespace {

constexpr double kLeastBandwidth = 1e-3;
constexpr double kLeastDensity = 1e-32;

/// Of integers half of one: good points that all have the same integer would never have another.
double least_bandwidth(const Axis& axis) {
  if (axis.kind() != Axis::Kind::Integer) return kLeastBandwidth;
  return std::max(kLeastBandwidth, 0.5 / axis.values());
}

}  // namespace

KernelDensity::KernelDensity(const Axes& axes, std::vector<std::vector<double>> points)
    : axes_{axes}, points_{std::move(points)} {
  assert(!points_.empty());
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) bandwidths_.push_back(bandwidth(axis));
}

double KernelDensity::bandwidth(std::size_t axis) const {
  const auto n = static_cast<double>(points_.size()), d = static_cast<double>(axes_.size());
  double sum = 0, squares = 0;
  for (const auto& point : points_) sum += point[axis];
  for (const auto& point : points_) squares += std::pow(point[axis] - sum / n, 2);
  const double reference = 1.06 * std::sqrt(squares / n) * std::pow(n, -1 / (4 + d));
  const bool is_number = axes_[axis].is_number();
  const double most = is_number ? 1.0 : 1 - 1 / axes_[axis].values();
  return std::clamp(reference, least_bandwidth(axes_[axis]), most);
}

double KernelDensity::log_density(const std::vector<double>& x) const {
  double sum = 0;
  for (const auto& point : points_) {
    double product = 1;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      const double width = bandwidths_[axis];
      if (axes_[axis].is_number())
        product *= std::exp(normal_log_density((x[axis] - point[axis]) / width)) / width;
      else
        product *= x[axis] == point[axis] ? 1 - width : width / (axes_[axis].values() - 1);
    }
    sum += product;
  }
  return std::log(std::max(sum / static_cast<double>(points_.size()), kLeastDensity));
}

std::vector<double> KernelDensity::draw(Random& random, double widening) const {
  auto x = points_[random.below(points_.size())];
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const double width = bandwidths_[axis];
    if (axes_[axis].is_number())
      x[axis] = draw_truncated_normal(random, x[axis], widening * width, 0, 1);
    else if (random.unit() < width)
      x[axis] = random.unit();
    x[axis] = axes_[axis].settled(x[axis]);
  }
  return x;
}

}  // namespace troupe::tune
