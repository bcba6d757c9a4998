#include <troupe/tune/searchers/cmaes.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "searchers/axis.hpp"
#include "searchers/cmaes/cma.hpp"
#include "searchers/eigen_json.hpp"
#include "searchers/saved_search.hpp"
#include "searchers/trial_score.hpp"

namespace troupe::tune {
namespace {

constexpr double kSameValue = 1e-12;                                // relative
constexpr std::size_t kMostRestarts = 12;                           // that double the population
constexpr auto kGiven = std::numeric_limits<std::uint64_t>::max();  // in place of a generation

void check(const CmaesOptions& options) {
  if (!(options.sigma > 0 && options.sigma <= 1))
    throw std::invalid_argument(fmt::format(
        "tune::cmaes: .sigma is {}; it has to be above 0, and at most 1", options.sigma));
  if (options.population == 1)
    throw std::invalid_argument("tune::cmaes: .population is 1; at least 2, or 0 for the default");
}

/// The axes that are numbers, by their place among all.
std::vector<std::size_t> numeric_axes(const Axes& axes, bool has_random_choices) {
  std::vector<std::size_t> numeric;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].is_number()) {
      numeric.push_back(i);
    } else if (!has_random_choices) {
      throw std::invalid_argument(
          fmt::format("tune::cmaes: field '{}' is {}, and CMA-ES searches numbers; set "
                      ".random_choices = true to draw it at random, or take another searcher",
                      axes[i].name(), to_string(axes[i].domain())));
    }
  }
  if (numeric.empty())
    throw std::invalid_argument("tune::cmaes: the space has no number with more than one value");
  return numeric;
}

class CmaesSearch final : public Searcher {
 public:
  CmaesSearch(const CmaesOptions& options, const SearchSetup& setup)
      : options_{options},
        setup_{setup},
        axes_{setup.space},
        numeric_{numeric_axes(axes_, options.random_choices)},
        cma_{begun(0)} {}

  Suggestion suggest(TrialId trial) override;
  /// Before the first point is drawn, the best one that has a result is where the search begins.
  /// After that it counts as a point of an earlier generation.
  void give(TrialId trial, const Configuration& configuration) override;
  void on_end(TrialId trial, const TrialEnd& end) override;
  std::optional<std::uint64_t> size() const override { return setup_.trials; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  /// Of a trial that runs.
  struct DrawnPoint {
    Eigen::VectorXd x = {};
    std::uint64_t generation = 0;
  };
  /// Of one that ended, and has not been counted.
  struct RankedPoint {
    TrialId trial = 0;
    double score = 0;
    DrawnPoint point = {};
  };

  Eigen::Index dimensions() const { return std::ssize(numeric_); }
  Cma begun(std::size_t restart) const;
  std::vector<double> point_of(const Eigen::VectorXd& x, TrialId trial) const;
  void close_generation();
  bool has_converged() const;
  void begin_again();
  Json identity() const;
  Json saved_distribution() const;
  CmaState distribution_from(const Json& json) const;
  DrawnPoint drawn_from(const Json& json) const;
  static Json saved_point(const RankedPoint& ranked);
  RankedPoint ranked_from(const Json& json) const;

  CmaesOptions options_;
  SearchSetup setup_;
  Axes axes_;
  std::vector<std::size_t> numeric_;  // of the axes: those that the distribution is over
  std::size_t restarts_ = 0;
  bool has_drawn_ = false;
  std::optional<RankedPoint> best_given_ = {};  // before that
  Cma cma_;
  std::vector<double> best_scores_ = {};  // of the generations since the last restart
  std::map<TrialId, DrawnPoint> running_ = {};
  std::vector<RankedPoint> ended_ = {};
};

/// The search after so many restarts, before its first generation.
Cma CmaesSearch::begun(std::size_t restart) const {
  std::vector<CellOf> cells;
  for (const auto index : numeric_) {
    const auto& axis = axes_[index];
    if (axis.kind() == Axis::Kind::Real)
      cells.emplace_back();
    else
      cells.emplace_back([axis](double x) { return axis.cell(x); });
  }
  Eigen::VectorXd mean = Eigen::VectorXd::Constant(dimensions(), 0.5);
  if (best_given_) mean = best_given_->point.x;
  Random random(setup_.seed, restart, "cmaes/restart");
  if (restart > 0)
    for (auto& x : mean) x = random.unit();
  const auto first = CmaConstants(numeric_.size(), options_.population).lambda;
  return {mean, options_.sigma, first << std::min(restart, kMostRestarts), std::move(cells)};
}

std::vector<double> CmaesSearch::point_of(const Eigen::VectorXd& x, TrialId trial) const {
  std::vector<double> point(axes_.size());
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].is_number()) continue;
    Random random(setup_.seed, trial, axes_[i].name());
    point[i] = random.unit();
  }
  for (std::size_t j = 0; j < numeric_.size(); ++j)
    point[numeric_[j]] = x[static_cast<Eigen::Index>(j)];
  return point;
}

bool CmaesSearch::has_converged() const {
  if (cma_.has_converged()) return true;
  const auto window =
      10 + static_cast<std::size_t>(std::ceil(30 * static_cast<double>(numeric_.size()) /
                                              static_cast<double>(cma_.constants().lambda)));
  if (best_scores_.size() < window) return false;
  const auto [low, high] = std::minmax_element(
      best_scores_.end() - static_cast<std::ptrdiff_t>(window), best_scores_.end());
  return *high - *low <= kSameValue * std::max(std::abs(*low), std::abs(*high));
}

void CmaesSearch::begin_again() {
  ++restarts_;
  cma_ = begun(restarts_);
  best_scores_.clear();
  running_.clear();
  ended_.clear();
}

void CmaesSearch::close_generation() {
  std::ranges::sort(ended_, [](const RankedPoint& a, const RankedPoint& b) {
    return a.score != b.score ? a.score > b.score : a.trial < b.trial;
  });
  const double best = ended_.front().score;
  if (std::isfinite(best)) {
    std::vector<CmaPoint> best_first;
    for (auto& each : ended_)
      best_first.push_back(
          {std::move(each.point.x), each.point.generation == cma_.state().generation});
    cma_.update(best_first);
    best_scores_.push_back(best);
  }
  ended_.clear();
  if (options_.restart && has_converged()) begin_again();
}

Json CmaesSearch::identity() const {
  auto json = search_identity("cmaes", setup_);
  json["sigma"] = options_.sigma;
  json["population"] = options_.population;
  json["restart"] = options_.restart;
  json["random_choices"] = options_.random_choices;
  return json;
}

Json CmaesSearch::saved_distribution() const {
  const auto& state = cma_.state();
  auto covariance = Json::array();
  for (Eigen::Index j = 0; j < state.covariance.cols(); ++j)
    covariance.push_back(to_json(Eigen::VectorXd(state.covariance.col(j))));
  return {{"mean", to_json(state.mean)},     {"sigma", state.sigma},
          {"covariance", covariance},        {"path_sigma", to_json(state.path_sigma)},
          {"path_c", to_json(state.path_c)}, {"spread", to_json(state.spread)},
          {"generation", state.generation}};
}

CmaState CmaesSearch::distribution_from(const Json& json) const {
  const auto d = dimensions();
  const auto& columns = json.at("covariance");
  if (std::ssize(columns) != d) throw std::invalid_argument("a saved covariance of another size");
  CmaState state{.mean = vector_from(json.at("mean"), d),
                 .sigma = json.at("sigma").get<double>(),
                 .covariance = Eigen::MatrixXd(d, d),
                 .path_sigma = vector_from(json.at("path_sigma"), d),
                 .path_c = vector_from(json.at("path_c"), d),
                 .spread = vector_from(json.at("spread"), d),
                 .generation = json.at("generation").get<std::uint64_t>()};
  for (Eigen::Index j = 0; j < d; ++j)
    state.covariance.col(j) = vector_from(columns.at(static_cast<std::size_t>(j)), d);
  return state;
}

CmaesSearch::DrawnPoint CmaesSearch::drawn_from(const Json& json) const {
  return {vector_from(json.at("x"), dimensions()), json.at("generation").get<std::uint64_t>()};
}

Json CmaesSearch::saved_point(const RankedPoint& ranked) {
  return {{"trial", ranked.trial},
          {"score", to_json(ranked.score)},
          {"generation", ranked.point.generation},
          {"x", to_json(ranked.point.x)}};
}

CmaesSearch::RankedPoint CmaesSearch::ranked_from(const Json& json) const {
  return {json.at("trial").get<TrialId>(), number_from(json.at("score")), drawn_from(json)};
}

Suggestion CmaesSearch::suggest(TrialId trial) {
  if (trial >= setup_.trials) return NoMore{};
  if (!std::exchange(has_drawn_, true) && best_given_) cma_ = begun(0);
  Random random(setup_.seed, trial, "cmaes/point");
  auto x = cma_.draw(random);
  const auto point = point_of(x, trial);
  running_[trial] = {std::move(x), cma_.state().generation};
  return axes_.configuration(point, setup_.seed, trial);
}

void CmaesSearch::give(TrialId trial, const Configuration& configuration) {
  const auto point = axes_.point(configuration);
  Eigen::VectorXd x(dimensions());
  for (std::size_t j = 0; j < numeric_.size(); ++j)
    x[static_cast<Eigen::Index>(j)] = point[numeric_[j]];
  running_[trial] = {std::move(x), kGiven};
}

void CmaesSearch::on_end(TrialId trial, const TrialEnd& end) {
  auto at = running_.extract(trial);
  if (!at) return;
  RankedPoint ended{trial, trial_score(end, setup_.objective), std::move(at.mapped())};
  if (!has_drawn_) {
    const bool is_better = !best_given_ || ended.score > best_given_->score;
    if (std::isfinite(ended.score) && is_better) best_given_ = std::move(ended);
    return;
  }
  ended_.push_back(std::move(ended));
  if (ended_.size() == cma_.constants().lambda) close_generation();
}

std::string CmaesSearch::save() const {
  auto json = identity();
  json["distribution"] = saved_distribution();
  json["restarts"] = restarts_;
  json["best_scores"] = best_scores_;
  auto& running = json["running"] = Json::array();
  for (const auto& [trial, point] : running_)
    running.push_back(
        {{"trial", trial}, {"generation", point.generation}, {"x", to_json(point.x)}});
  auto& ended = json["ended"] = Json::array();
  for (const auto& each : ended_) ended.push_back(saved_point(each));
  json["has_drawn"] = has_drawn_;
  json["best_given"] = best_given_ ? saved_point(*best_given_) : Json();
  return dump(json);
}

void CmaesSearch::load(std::string_view saved) {
  load_search(saved, identity(), [&](const Json& json) {
    auto distribution = distribution_from(json.at("distribution"));
    std::map<TrialId, DrawnPoint> running;
    for (const auto& each : json.at("running"))
      running[each.at("trial").get<TrialId>()] = drawn_from(each);
    std::vector<RankedPoint> ended;
    for (const auto& each : json.at("ended")) ended.push_back(ranked_from(each));
    const auto& given = json.at("best_given");
    std::optional<RankedPoint> best_given;
    if (!given.is_null()) best_given.emplace(ranked_from(given));
    const auto has_drawn = json.at("has_drawn").get<bool>();
    auto best_scores = json.at("best_scores").get<std::vector<double>>();
    restarts_ = json.at("restarts").get<std::size_t>();
    has_drawn_ = has_drawn;
    best_given_ = std::move(best_given);
    cma_ = begun(restarts_);
    cma_.set_state(std::move(distribution));
    best_scores_ = std::move(best_scores);
    running_ = std::move(running);
    ended_ = std::move(ended);
  });
}

}  // namespace

SearcherFactory cmaes(CmaesOptions options) {
  check(options);
  return [options](const SearchSetup& setup) {
    require_trials("tune::cmaes", setup);
    return std::make_unique<CmaesSearch>(options, setup);
  };
}

}  // namespace troupe::tune
