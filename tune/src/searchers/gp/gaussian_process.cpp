#include <troupe/tune/searchers/gaussian_process.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "searchers/axis.hpp"
#include "searchers/eigen_json.hpp"
#include "searchers/gp/acquisition.hpp"
#include "searchers/quasi_random/sequences.hpp"
#include "searchers/saved_search.hpp"
#include "searchers/trial_score.hpp"

namespace troupe::tune {
namespace {

constexpr double kMostListedValues = 32;
constexpr std::size_t kAlwaysFitted = 100;   // results up to which every one is followed by a fit
constexpr double kGrowthToFit = 1.1;         // beyond, of the number of results
constexpr std::size_t kAlwaysFresh = 30;     // results up to which every fit starts from ones too
constexpr std::size_t kFreshStartEvery = 8;  // results, from there to kAlwaysFitted
constexpr std::size_t kAllCandidates = 300;  // results up to which there are all of them
constexpr Eigen::Index kIncumbents = 2;

void check(const GaussianProcessOptions& options) {
  const auto refuse_below = [](std::string_view name, std::size_t value, std::size_t least) {
    if (value >= least) return;
    throw std::invalid_argument(
        fmt::format("tune::gaussian_process: .{} is {}, at least {}", name, value, least));
  };
  refuse_below("startup", options.startup, 2);
  refuse_below("candidates", options.candidates, 1);
  refuse_below("fitted", options.fitted, 10);
  refuse_below("known", options.known, 10);
}

/// The coordinates that stand for the values of an axis with few of them.
std::vector<double> listed_values(const Axis& axis) {
  std::vector<double> values{axis.settled(0)};
  while (values.size() < static_cast<std::size_t>(axis.values())) {
    if (axis.kind() == Axis::Kind::Category)
      values.push_back(axis.coordinate_of_category(values.size()));
    else
      values.push_back(*axis.neighbour(values.back(), /*is_above=*/true));
  }
  return values;
}

std::vector<GpCoordinate> coordinates_of(const Axes& axes) {
  std::vector<GpCoordinate> coordinates;
  for (const auto& axis : axes) {
    auto& coordinate = coordinates.emplace_back();
    coordinate.is_category = axis.kind() == Axis::Kind::Category;
    if (axis.kind() == Axis::Kind::Real) continue;
    coordinate.settled = [axis](double x) { return axis.settled(x); };
    if (coordinate.is_category || axis.values() <= kMostListedValues)
      coordinate.values = listed_values(axis);
  }
  return coordinates;
}

/// At most so many of the results, in their order: half of them the best, the others spread evenly
/// over the rest.
std::vector<std::size_t> chosen_results(const std::vector<double>& scores, std::size_t most) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() <= most) return order;
  std::ranges::stable_sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
  const auto best = most / 2, others = most - best, rest = order.size() - best;
  std::sort(order.begin() + static_cast<std::ptrdiff_t>(best), order.end());
  std::vector<std::size_t> chosen(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best));
  for (std::size_t i = 0; i < others; ++i) chosen.push_back(order[best + i * rest / others]);
  std::ranges::sort(chosen);
  return chosen;
}

class GaussianProcessSearch final : public Searcher {
 public:
  GaussianProcessSearch(const GaussianProcessOptions& options, const SearchSetup& setup)
      : options_{options},
        setup_{setup},
        axes_{setup.space},
        coordinates_{coordinates_of(axes_)},
        startup_points_{axes_.size(), setup.seed},
        parameters_{default_parameters(dimensions())} {}

  Suggestion suggest(TrialId trial) override;
  void give(TrialId trial, const Configuration& configuration) override;
  void on_end(TrialId trial, const TrialEnd& end) override;
  std::optional<std::uint64_t> size() const override { return setup_.trials; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  /// Of a trial that ended; minus infinity where it counts as the worst.
  struct Result {
    Eigen::VectorXd x;
    double score = 0;
  };

  Eigen::Index dimensions() const { return std::ssize(coordinates_); }
  Eigen::VectorXd proposed(TrialId trial);
  Eigen::VectorXd startup_point(TrialId trial);
  std::vector<double> scores() const;
  GpData data_of(const std::vector<double>& scores, const std::vector<std::size_t>& rows) const;
  void fit_if_due(const std::vector<double>& scores);
  Eigen::MatrixXd incumbents(const std::vector<double>& scores) const;
  Eigen::MatrixXd awaited() const;
  Json identity() const;

  GaussianProcessOptions options_;
  SearchSetup setup_;
  Axes axes_;
  std::vector<GpCoordinate> coordinates_;
  SobolSequence startup_points_;
  std::vector<Result> results_ = {};  // in the order in which they came
  std::size_t finite_ = 0;            // of them
  std::map<TrialId, Eigen::VectorXd> running_ = {};
  GpParameters parameters_;
  std::size_t fitted_at_ = 0;  // results that there were at the last fit; 0: there was none
};

Eigen::VectorXd GaussianProcessSearch::startup_point(TrialId trial) {
  const auto point = startup_points_.point(trial);
  Eigen::VectorXd x(dimensions());
  for (std::size_t j = 0; j < axes_.size(); ++j)
    x[static_cast<Eigen::Index>(j)] = axes_[j].settled(point[j]);
  return x;
}

/// Standardized, over all results; what is not finite is the worst that is.
std::vector<double> GaussianProcessSearch::scores() const {
  double worst = std::numeric_limits<double>::infinity();
  for (const auto& result : results_)
    if (std::isfinite(result.score)) worst = std::min(worst, result.score);
  std::vector<double> all;
  for (const auto& result : results_)
    all.push_back(std::isfinite(result.score) ? result.score : worst);
  // Scaled first: the squares of large values would not be finite.
  Eigen::Map<Eigen::ArrayXd> values(all.data(), std::ssize(all));
  const double largest = values.abs().maxCoeff();
  if (largest > 0) values /= largest;
  values -= values.mean();
  const double deviation = std::sqrt(values.square().mean());
  if (deviation > 1e-14) values /= deviation;
  return all;
}

GpData GaussianProcessSearch::data_of(const std::vector<double>& scores,
                                      const std::vector<std::size_t>& rows) const {
  GpData data{.x = Eigen::MatrixXd(std::ssize(rows), dimensions()),
              .y = Eigen::VectorXd(std::ssize(rows))};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    data.x.row(row) = results_[rows[i]].x.transpose();
    data.y[row] = scores[rows[i]];
  }
  for (const auto& coordinate : coordinates_) data.is_category.push_back(coordinate.is_category);
  return data;
}

void GaussianProcessSearch::fit_if_due(const std::vector<double>& scores) {
  const auto n = results_.size();
  const bool is_due = fitted_at_ == 0 || (n <= kAlwaysFitted && n > fitted_at_) ||
                      static_cast<double>(n) >= kGrowthToFit * static_cast<double>(fitted_at_);
  if (!is_due) return;
  std::vector<GpParameters> starts;
  if (fitted_at_ > 0) starts.push_back(parameters_);
  if (n <= kAlwaysFresh || n > kAlwaysFitted || n % kFreshStartEvery == 0 || starts.empty())
    starts.push_back(default_parameters(dimensions()));
  parameters_ = fitted(data_of(scores, chosen_results(scores, options_.fitted)), starts);
  fitted_at_ = n;
}

/// The best results, a row each, the best first.
Eigen::MatrixXd GaussianProcessSearch::incumbents(const std::vector<double>& scores) const {
  const auto count = std::min(kIncumbents, std::ssize(scores));
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
  Eigen::MatrixXd rows(count, dimensions());
  for (Eigen::Index i = 0; i < count; ++i)
    rows.row(i) = results_[order[static_cast<std::size_t>(i)]].x.transpose();
  return rows;
}

Eigen::MatrixXd GaussianProcessSearch::awaited() const {
  Eigen::MatrixXd rows(std::ssize(running_), dimensions());
  Eigen::Index row = 0;
  for (const auto& [trial, x] : running_) rows.row(row++) = x.transpose();
  return rows;
}

Eigen::VectorXd GaussianProcessSearch::proposed(TrialId trial) {
  if (finite_ < options_.startup) return startup_point(trial);
  const auto standardized = scores();
  fit_if_due(standardized);
  const auto known = chosen_results(standardized, options_.known);
  const GpPosterior posterior(data_of(standardized, known), awaited(), parameters_);
  Random random(setup_.seed, trial, "gaussian_process/candidates");
  const auto candidates =
      options_.candidates * kAllCandidates / std::max(kAllCandidates, known.size());
  return maximized_improvement(posterior, coordinates_, incumbents(standardized), random,
                               {.candidates = std::max<std::size_t>(candidates, 1)});
}

Json GaussianProcessSearch::identity() const {
  auto json = search_identity("gaussian_process", setup_);
  json["startup"] = options_.startup;
  json["candidates"] = options_.candidates;
  json["fitted"] = options_.fitted;
  json["known"] = options_.known;
  return json;
}

Suggestion GaussianProcessSearch::suggest(TrialId trial) {
  if (trial >= setup_.trials) return NoMore{};
  auto x = proposed(trial);
  const std::vector<double> point(x.begin(), x.end());
  running_[trial] = std::move(x);
  return axes_.configuration(point, setup_.seed, trial);
}

void GaussianProcessSearch::give(TrialId trial, const Configuration& configuration) {
  const auto point = axes_.point(configuration);
  running_[trial] = Eigen::Map<const Eigen::VectorXd>(point.data(), std::ssize(point));
}

void GaussianProcessSearch::on_end(TrialId trial, const TrialEnd& end) {
  auto at = running_.extract(trial);
  if (!at) return;
  const double score = trial_score(end, setup_.objective);
  if (std::isfinite(score)) ++finite_;
  results_.push_back({std::move(at.mapped()), score});
}

std::string GaussianProcessSearch::save() const {
  auto json = identity();
  json["parameters"] = {{"inverse_squared_lengths", to_json(parameters_.inverse_squared_lengths)},
                        {"scale", parameters_.scale},
                        {"noise", parameters_.noise},
                        {"fitted_at", fitted_at_}};
  auto& running = json["running"] = Json::array();
  for (const auto& [trial, x] : running_) running.push_back({{"trial", trial}, {"x", to_json(x)}});
  auto& results = json["results"] = Json::array();
  for (const auto& result : results_)
    results.push_back({{"score", to_json(result.score)}, {"x", to_json(result.x)}});
  return dump(json);
}

void GaussianProcessSearch::load(std::string_view saved) {
  load_search(saved, identity(), [&](const Json& json) {
    const auto d = dimensions();
    std::vector<Result> results;
    for (const auto& each : json.at("results"))
      results.push_back({vector_from(each.at("x"), d), number_from(each.at("score"))});
    std::map<TrialId, Eigen::VectorXd> running;
    for (const auto& each : json.at("running"))
      running[each.at("trial").get<TrialId>()] = vector_from(each.at("x"), d);
    const auto& from = json.at("parameters");
    GpParameters parameters{vector_from(from.at("inverse_squared_lengths"), d),
                            from.at("scale").get<double>(), from.at("noise").get<double>()};
    fitted_at_ = from.at("fitted_at").get<std::size_t>();
    parameters_ = std::move(parameters);
    results_ = std::move(results);
    running_ = std::move(running);
    const auto is_finite = [](const Result& result) { return std::isfinite(result.score); };
    finite_ = static_cast<std::size_t>(std::ranges::count_if(results_, is_finite));
  });
}

}  // namespace

SearcherFactory gaussian_process(GaussianProcessOptions options) {
  check(options);
  return [options](const SearchSetup& setup) {
    require_trials("tune::gaussian_process", setup);
    const auto fields = Axes(setup.space).size();
    if (fields == 0 || fields > SobolSequence::kMostDimensions)
      throw std::invalid_argument(
          fmt::format("tune::gaussian_process: the space has {} fields with more than one value; 1 "
                      "to {} of them can be searched",
                      fields, SobolSequence::kMostDimensions));
    return std::make_unique<GaussianProcessSearch>(options, setup);
  };
}

}  // namespace troupe::tune
