#include "searchers/gp/lbfgs.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

namespace troupe::tune {
namespace {

using Vector = Eigen::VectorXd;

constexpr double kArmijo = 1e-4;
constexpr int kMostBacktracks = 25;

/// One step and the change of the gradient along it.
struct CurvaturePair {
  Vector step;
  Vector change;
};
using Curvature = std::deque<CurvaturePair>;

struct DescentBox {
  const Vector& low;
  const Vector& high;
  Vector clamped(const Vector& x) const { return x.cwiseMax(low).cwiseMin(high); }
};

struct DescentPoint {
  Vector x;
  double value;
  Vector gradient;
};

DescentPoint evaluated(const SmoothFunction& f, Vector x) {
  DescentPoint at{std::move(x), 0, {}};
  at.gradient = Vector::Zero(at.x.size());
  at.value = f(at.x, at.gradient);
  if (!std::isfinite(at.value) || !at.gradient.allFinite())
    at.value = std::numeric_limits<double>::infinity();
  return at;
}

/// 1 for a coordinate that may move, 0 for one that the descent would push out of the box.
Vector free_coordinates(const DescentPoint& at, const DescentBox& box) {
  Vector is_free = Vector::Ones(at.x.size());
  for (Eigen::Index j = 0; j < is_free.size(); ++j) {
    const bool stuck = (at.x[j] <= box.low[j] && at.gradient[j] > 0) ||
                       (at.x[j] >= box.high[j] && at.gradient[j] < 0);
    if (stuck) is_free[j] = 0;
  }
  return is_free;
}

/// The two-loop recursion, among the free coordinates.
Vector descent(const Curvature& curvature, const Vector& gradient, const Vector& is_free) {
  Vector direction = -gradient.cwiseProduct(is_free);
  struct Used {
    Vector step, change;
    double rho, alpha;
  };
  std::vector<Used> used;
  for (auto pair = curvature.rbegin(); pair != curvature.rend(); ++pair) {
    Used each{pair->step.cwiseProduct(is_free), pair->change.cwiseProduct(is_free), 0, 0};
    const double product = each.step.dot(each.change);
    if (product <= 1e-12 * each.step.norm() * each.change.norm()) continue;
    each.rho = 1 / product;
    each.alpha = each.rho * each.step.dot(direction);
    direction -= each.alpha * each.change;
    used.push_back(std::move(each));
  }
  if (!used.empty())
    direction /= used.front().rho * used.front().change.squaredNorm();
  else
    direction /= std::max(1.0, direction.lpNorm<1>());
  for (auto each = used.rbegin(); each != used.rend(); ++each)
    direction += (each->alpha - each->rho * each->change.dot(direction)) * each->step;
  return direction;
}

/// The first point along the projected ray that is low enough; none where there is none.
std::optional<DescentPoint> searched(const SmoothFunction& f, const DescentPoint& from,
                                     const Vector& direction, const DescentBox& box) {
  double length = 1;
  for (int tries = 0; tries < kMostBacktracks; ++tries) {
    auto next = evaluated(f, box.clamped(from.x + length * direction));
    const double slope = from.gradient.dot(next.x - from.x);
    if (next.value <= from.value + kArmijo * slope && next.value < from.value) return next;
    const double curve = 2 * (next.value - from.value - slope);
    const double shorter = std::isfinite(curve) && curve > 0 ? -slope / curve : 0.5;
    length *= std::clamp(shorter, 0.1, 0.5);
  }
  return std::nullopt;
}

}  // namespace

LbfgsResult minimize(const SmoothFunction& f, const Eigen::VectorXd& x, const Eigen::VectorXd& low,
                     const Eigen::VectorXd& high, const LbfgsOptions& options) {
  const DescentBox box{low, high};
  assert((x.array() >= low.array()).all() && (x.array() <= high.array()).all());
  auto at = evaluated(f, x);
  if (!std::isfinite(at.value)) return {at.x, at.value};
  Curvature curvature;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const Vector projected = at.x - box.clamped(at.x - at.gradient);
    if (projected.lpNorm<Eigen::Infinity>() <= options.gradient) break;
    const auto is_free = free_coordinates(at, box);
    auto direction = descent(curvature, at.gradient, is_free);
    if (direction.dot(at.gradient) >= 0) {
      curvature.clear();
      direction = descent(curvature, at.gradient, is_free);
    }
    auto next = searched(f, at, direction, box);
    if (!next) {
      if (curvature.empty()) break;
      curvature.clear();
      continue;
    }
    curvature.push_back({next->x - at.x, next->gradient - at.gradient});
    if (curvature.size() > options.memory) curvature.pop_front();
    const double gained = at.value - next->value;
    at = std::move(*next);
    if (gained <= options.decrease * std::max(1.0, std::abs(at.value))) break;
  }
  return {at.x, at.value};
}

}  // namespace troupe::tune
