#include "schedulers/pb2/bandit.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "schedulers/explore.hpp"
#include "schedulers/pb2/time_varying.hpp"
#include "searchers/axis.hpp"
#include "searchers/eigen_json.hpp"

namespace troupe::tune {
namespace {

using Vector = Eigen::VectorXd;

constexpr std::size_t kLeastKnown = 10;
constexpr std::size_t kLeastIntervals = 4;  // before there is a model

/// The fields that the bandit chooses, and those that it does not.
SearchSpace fields_of(const SearchSpace& mutate, bool are_ranges) {
  SearchSpace fields;
  std::ranges::copy_if(mutate, std::back_inserter(fields), [&](const Dimension& field) {
    return field.domain.range().has_value() == are_ranges;
  });
  return fields;
}

SearchSpace checked_ranges(const Pb2Options& options) {
  if (options.known < kLeastKnown) {
    throw std::invalid_argument(
        fmt::format("pb2: known is {}, at least {}", options.known, kLeastKnown));
  }
  auto ranges = fields_of(options.mutate, true);
  for (const auto& [name, domain] : ranges) {
    if (domain.kind() != Domain::Kind::Normal) continue;
    throw std::invalid_argument(fmt::format(
        "pb2: field '{}' is {}, which has no bounds; the bandit chooses from a range, as "
        "uniform(low, high)",
        name, to_string(domain)));
  }
  if (ranges.empty()) {
    throw std::invalid_argument(
        "pb2: no field of mutate is a range, so that the bandit has nothing to choose; take pbt");
  }
  return ranges;
}

class BanditExplorer final : public Explorer {
 public:
  BanditExplorer(const Pb2Options& options, std::uint64_t seed)
      : ranges_{checked_ranges(options)},
        others_{fields_of(options.mutate, false)},
        resample_{options.resample},
        interval_{static_cast<double>(options.interval)},
        known_{options.known},
        seed_{seed} {
    for (const auto& field : ranges_) axes_.emplace_back(field);
    parameters_ = default_time_varying(dimensions());
  }

  std::string_view name() const override { return "pb2"; }
  Configuration explored(TrialId trial, const From& from, std::uint64_t draw) override;
  void on_report(TrialId trial, std::int64_t t, double score) override;
  void on_judged(TrialId trial, const Configuration& config, std::int64_t t, double score) override;
  void forget(TrialId trial) override { running_.erase(trial); }
  Json identity() const override { return {{"known", known_}}; }
  Json save() const override;
  void load(const Json& saved) override;

 private:
  /// Of a member: where the interval that it trains in began.
  struct Running {
    std::int64_t t = 0;
    double score = 0;
    Vector x = {};  // that it trains with; empty: it is not known yet
  };
  /// That ended.
  struct Interval {
    double t = 0;  // at which it began, in units of the interval
    Vector x = {};
    double improvement = 0;  // for each report
  };

  Eigen::Index dimensions() const { return std::ssize(axes_); }
  double time_of(std::int64_t t) const { return static_cast<double>(t) / interval_; }
  Vector point_of(const Configuration& config) const;
  TimedPoints observed() const;
  Vector improvements() const;
  TimedPoints awaited(TrialId except) const;
  Vector chosen(TrialId trial, std::int64_t t, std::uint64_t draw);

  SearchSpace ranges_;
  SearchSpace others_;
  std::vector<Axis> axes_ = {};  // of the ranges
  double resample_;
  double interval_;
  std::size_t known_;
  std::uint64_t seed_;
  std::map<TrialId, Running> running_ = {};
  std::deque<Interval> intervals_ = {};  // the last ones
  TimeVaryingParameters parameters_ = {};
};

/// Of the ranges; a value outside of its range counts as the nearest one. Empty where the
/// configuration lacks a field.
Vector BanditExplorer::point_of(const Configuration& config) const {
  Vector x(dimensions());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    const auto& axis = axes_[static_cast<std::size_t>(j)];
    const auto field = std::ranges::find(config, axis.name(), &Configuration::value_type::first);
    if (field == config.end()) return {};
    const auto& value = field->second;
    const bool is_number = std::holds_alternative<double>(value.value()) ||
                           std::holds_alternative<std::int64_t>(value.value());
    if (!is_number) return {};
    x[j] = axis.coordinate_of(axis.domain().nearest_to(value));
  }
  return x;
}

void BanditExplorer::on_report(TrialId trial, std::int64_t t, double score) {
  if (std::isfinite(score)) running_.try_emplace(trial, Running{t, score, {}});
}

void BanditExplorer::on_judged(TrialId trial, const Configuration& config, std::int64_t t,
                               double score) {
  const auto x = point_of(config);
  const auto began = running_.find(trial);
  const bool is_interval = began != running_.end() && began->second.t < t && x.size() > 0;
  if (is_interval && std::isfinite(score)) {
    const auto& from = began->second;
    const double improvement = (score - from.score) / static_cast<double>(t - from.t);
    if (std::isfinite(improvement)) intervals_.push_back({time_of(from.t), x, improvement});
    if (intervals_.size() > known_) intervals_.pop_front();
  }
  running_.erase(trial);
  if (std::isfinite(score)) running_[trial] = {t, score, x};
}

TimedPoints BanditExplorer::observed() const {
  TimedPoints points{Eigen::MatrixXd(std::ssize(intervals_), dimensions()),
                     Vector(std::ssize(intervals_))};
  for (Eigen::Index i = 0; i < points.t.size(); ++i) {
    const auto& interval = intervals_[static_cast<std::size_t>(i)];
    points.x.row(i) = interval.x.transpose();
    points.t[i] = interval.t;
  }
  return points;
}

/// Standardized.
Vector BanditExplorer::improvements() const {
  Vector y(std::ssize(intervals_));
  for (Eigen::Index i = 0; i < y.size(); ++i)
    y[i] = intervals_[static_cast<std::size_t>(i)].improvement;
  // Scaled first: the squares of large values would not be finite.
  const double largest = y.cwiseAbs().maxCoeff();
  if (largest > 0) y /= largest;
  y.array() -= y.mean();
  const double deviation = std::sqrt(y.squaredNorm() / static_cast<double>(y.size()));
  if (deviation > 1e-14) y /= deviation;
  return y;
}

/// What other members train with.
TimedPoints BanditExplorer::awaited(TrialId except) const {
  std::vector<const Running*> others;
  for (const auto& [trial, running] : running_)
    if (trial != except && running.x.size() > 0) others.push_back(&running);
  TimedPoints points{Eigen::MatrixXd(std::ssize(others), dimensions()), Vector(std::ssize(others))};
  for (Eigen::Index i = 0; i < points.t.size(); ++i) {
    const auto& running = *others[static_cast<std::size_t>(i)];
    points.x.row(i) = running.x.transpose();
    points.t[i] = time_of(running.t);
  }
  return points;
}

Vector BanditExplorer::chosen(TrialId trial, std::int64_t t, std::uint64_t draw) {
  Random random(seed_, draw, "pb2/candidates");
  if (intervals_.size() < std::max(kLeastIntervals, axes_.size() + 1)) {
    Vector drawn(dimensions());
    for (auto& x : drawn) x = random.unit();
    return drawn;
  }
  const auto points = observed();
  const auto y = improvements();
  parameters_ = fitted(points, y, parameters_);
  const TimeVaryingPosterior posterior(points, y, awaited(trial), parameters_);
  const double beta = 0.2 * std::log(0.4 * static_cast<double>(intervals_.size()));
  return highest_upper_bound(posterior, time_of(t), std::sqrt(std::max(0.0, beta)), points.x,
                             random);
}

Configuration BanditExplorer::explored(TrialId trial, const From& from, std::uint64_t draw) {
  static const std::vector<double> unused{1};  // others_ has no range
  auto config = tune::explored(from.config, {others_, resample_, unused}, seed_, draw);
  auto x = chosen(trial, from.t, draw);
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    const auto& axis = axes_[static_cast<std::size_t>(j)];
    auto value = axis.value_at(x[j], Random(seed_, draw, "pb2 block of " + axis.name()));
    x[j] = axis.settled(x[j]);
    const auto field = std::ranges::find(config, axis.name(), &Configuration::value_type::first);
    if (field == config.end())
      config.emplace_back(axis.name(), std::move(value));
    else
      field->second = std::move(value);
  }
  running_[trial] = {from.t, from.score, std::move(x)};
  return config;
}

Json BanditExplorer::save() const {
  auto running = Json::array();
  for (const auto& [trial, from] : running_) {
    running.push_back(
        {{"trial", trial}, {"t", from.t}, {"score", from.score}, {"x", to_json(from.x)}});
  }
  auto intervals = Json::array();
  for (const auto& each : intervals_)
    intervals.push_back({{"t", each.t}, {"improvement", each.improvement}, {"x", to_json(each.x)}});
  return {{"running", std::move(running)},
          {"intervals", std::move(intervals)},
          {"parameters",
           {{"inverse_squared_lengths", to_json(parameters_.gp.inverse_squared_lengths)},
            {"scale", parameters_.gp.scale},
            {"noise", parameters_.gp.noise},
            {"omega", parameters_.omega}}}};
}

void BanditExplorer::load(const Json& saved) {
  const auto d = dimensions();
  std::map<TrialId, Running> running;
  for (const auto& each : saved.at("running")) {
    const auto& x = each.at("x");
    running[each.at("trial").get<TrialId>()] = {each.at("t").get<std::int64_t>(),
                                                each.at("score").get<double>(),
                                                vector_from(x, x.empty() ? 0 : d)};
  }
  std::deque<Interval> intervals;
  for (const auto& each : saved.at("intervals"))
    intervals.push_back({each.at("t").get<double>(), vector_from(each.at("x"), d),
                         each.at("improvement").get<double>()});
  const auto& from = saved.at("parameters");
  TimeVaryingParameters parameters{{vector_from(from.at("inverse_squared_lengths"), d),
                                    from.at("scale").get<double>(), from.at("noise").get<double>()},
                                   from.at("omega").get<double>()};
  running_ = std::move(running);
  intervals_ = std::move(intervals);
  parameters_ = std::move(parameters);
}

}  // namespace

std::unique_ptr<Explorer> bandit_explorer(const Pb2Options& options, std::uint64_t seed) {
  return std::make_unique<BanditExplorer>(options, seed);
}

}  // namespace troupe::tune
