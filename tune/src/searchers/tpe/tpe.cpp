#include <troupe/tune/searchers/tpe.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "searchers/axis.hpp"
#include "searchers/quasi_random/sequences.hpp"
#include "searchers/saved_search.hpp"
#include "searchers/tpe/history.hpp"
#include "searchers/tpe/parzen.hpp"

namespace troupe::tune {
namespace {

void check(const TpeOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("tune::tpe: " + what);
  };
  if (options.candidates == 0u) refuse(".candidates is 0, at least 1");
  if (options.most_good < 1) refuse(".most_good is 0, at least 1");
  if (!(options.gamma > 0 && options.gamma <= 1))
    refuse(fmt::format(".gamma is {}, above 0 and at most 1", options.gamma));
  if (options.narrowing && !(*options.narrowing > 0 && std::isfinite(*options.narrowing)))
    refuse(fmt::format(".narrowing is {}, above 0", *options.narrowing));
}

std::size_t candidates_of(const TpeOptions& options) {
  return options.candidates.value_or(options.multivariate ? 48 : 10);
}

double narrowing_of(const TpeOptions& options) {
  return options.narrowing.value_or(options.multivariate ? 1.1 : 1.25);
}

/// Points for the first trials; none where the space has more fields than the sequence dimensions.
std::optional<SobolSequence> startup_points(const Axes& axes, std::uint64_t seed) {
  if (axes.size() == 0 || axes.size() > SobolSequence::kMostDimensions) return std::nullopt;
  return SobolSequence(axes.size(), seed);
}

Json tpe_identity(const SearchSetup& setup, const TpeOptions& options) {
  auto json = search_identity("tpe", setup);
  json["startup_trials"] = options.startup_trials;
  json["candidates"] = options.candidates ? Json(*options.candidates) : Json();
  json["multivariate"] = options.multivariate;
  json["constant_liar"] = options.constant_liar;
  json["gamma"] = options.gamma;
  json["most_good"] = options.most_good;
  json["narrowing"] = options.narrowing ? Json(*options.narrowing) : Json();
  return json;
}

class TpeSearcher final : public Searcher {
 public:
  TpeSearcher(const SearchSetup& setup, const TpeOptions& options)
      : setup_{setup},
        options_{options},
        identity_(tpe_identity(setup, options)),  // braces would make it an array
        axes_{setup.space},
        startup_points_{startup_points(axes_, setup.seed)},
        history_{axes_.size()} {
    require_trials("tune::tpe", setup);
  }

  Suggestion suggest(TrialId trial) override;
  void give(TrialId trial, const Configuration& configuration) override;
  void on_end(TrialId trial, const TrialEnd& end) override;
  std::optional<std::uint64_t> size() const override { return setup_.trials; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  void require_next(TrialId trial) const;
  Configuration startup(TrialId trial);
  std::vector<double> modelled(TrialId trial) const;
  std::vector<double> best_candidate(std::span<const std::size_t> axes,
                                     const TpeHistory::Split& split, Random random) const;
  ParzenEstimator estimator(std::span<const std::size_t> axes,
                            const std::vector<TpeHistory::Number>& trials) const;

  SearchSetup setup_;
  TpeOptions options_;
  Json identity_;
  Axes axes_;
  std::optional<SobolSequence> startup_points_;
  TpeHistory history_;
};

Suggestion TpeSearcher::suggest(TrialId trial) {
  if (trial >= setup_.trials) return NoMore{};
  require_next(trial);
  if (axes_.size() == 0 || history_.finished() < options_.startup_trials) {
    auto configuration = startup(trial);
    history_.begin(axes_.point(configuration));
    return configuration;
  }
  auto point = modelled(trial);
  auto configuration = axes_.configuration(point, setup_.seed, trial);
  history_.begin(std::move(point));
  return configuration;
}

void TpeSearcher::give(TrialId trial, const Configuration& configuration) {
  require_next(trial);
  history_.begin(axes_.point(configuration));
}

void TpeSearcher::require_next(TrialId trial) const {
  if (trial == history_.trials().size()) return;
  throw std::logic_error(fmt::format("tune::tpe is asked for trial {} after {} trials", trial,
                                     history_.trials().size()));
}

Configuration TpeSearcher::startup(TrialId trial) {
  if (startup_points_)
    return axes_.configuration(startup_points_->point(trial), setup_.seed, trial);
  RandomSearcher random(setup_.space, setup_.seed, setup_.trials);
  return std::get<Configuration>(random.suggest(trial));
}

ParzenEstimator TpeSearcher::estimator(std::span<const std::size_t> axes,
                                       const std::vector<TpeHistory::Number>& trials) const {
  constexpr auto outside = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> index_of(history_.trials().size(), outside);
  for (std::uint32_t index = 0; index < trials.size(); ++index) index_of[trials[index]] = index;
  std::vector<const Axis*> of;
  std::vector<AxisSample> samples;
  for (const auto axis : axes) {
    AxisSample sample;
    sample.coordinates.reserve(trials.size());
    sample.sorted.reserve(trials.size());
    for (const auto trial : trials)
      sample.coordinates.push_back(history_.trials()[trial].point[axis]);
    for (const auto trial : history_.sorted(axis)) {
      if (index_of[trial] != outside) sample.sorted.push_back(index_of[trial]);
    }
    of.push_back(&axes_[axis]);
    samples.push_back(std::move(sample));
  }
  return {of, samples, narrowing_of(options_)};
}

std::vector<double> TpeSearcher::best_candidate(std::span<const std::size_t> axes,
                                                const TpeHistory::Split& split,
                                                Random random) const {
  const auto good = estimator(axes, split.good), bad = estimator(axes, split.bad);
  std::vector<double> best;
  double best_score = 0;
  for (std::size_t candidate = 0; candidate < candidates_of(options_); ++candidate) {
    auto point = good.draw(random);
    const double score = good.log_density(point) - bad.log_density(point);
    if (!best.empty() && !(score > best_score)) continue;
    best = std::move(point);
    best_score = score;
  }
  return best;
}

std::vector<double> TpeSearcher::modelled(TrialId trial) const {
  const auto good = good_count(history_.finished(), options_.gamma, options_.most_good);
  const auto split = history_.split(good, options_.constant_liar);
  std::vector<std::size_t> all(axes_.size());
  for (std::size_t axis = 0; axis < all.size(); ++axis) all[axis] = axis;
  if (options_.multivariate) return best_candidate(all, split, Random(setup_.seed, trial, "tpe"));
  std::vector<double> point;
  for (const auto axis : all) {
    const Random random(setup_.seed, trial, "tpe " + axes_[axis].name());
    point.push_back(best_candidate(std::span(&axis, 1), split, random).front());
  }
  return point;
}

void TpeSearcher::on_end(TrialId trial, const TrialEnd& end) {
  const auto value = end.stopped ? end.last : end.best;
  const bool has_value = !end.errored && value && std::isfinite(*value);
  const auto standing = !has_value    ? TpeStanding::Failed
                        : end.stopped ? TpeStanding::Stopped
                                      : TpeStanding::Complete;
  history_.end(trial, standing, has_value ? -setup_.objective.score(*value) : 0, end.t);
}

std::string TpeSearcher::save() const {
  auto json = identity_;
  auto trials = Json::array();
  for (const auto& [point, standing, loss, t] : history_.trials())
    trials.push_back({point, static_cast<int>(standing), loss, t});
  json["history"] = std::move(trials);
  return dump(json);
}

void TpeSearcher::load(std::string_view saved) {
  load_search(saved, identity_, [&](const Json& json) {
    TpeHistory history(axes_.size());
    for (const auto& each : json.at("history")) {
      auto point = each.at(0).get<std::vector<double>>();
      const auto standing = each.at(1).get<int>();
      if (point.size() != axes_.size() || standing < 0 || standing > 3)
        throw std::invalid_argument("not a state of tune::tpe: " + dump(each));
      const TrialId trial = history.trials().size();
      history.begin(std::move(point));
      if (static_cast<TpeStanding>(standing) == TpeStanding::Running) continue;
      history.end(trial, static_cast<TpeStanding>(standing), each.at(2).get<double>(),
                  each.at(3).get<std::int64_t>());
    }
    history_ = std::move(history);
  });
}

}  // namespace

SearcherFactory tpe(TpeOptions options) {
  check(options);
  return [=](const SearchSetup& setup) { return std::make_unique<TpeSearcher>(setup, options); };
}

}  // namespace troupe::tune
