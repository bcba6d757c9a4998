#include <troupe/tune/searchers/bohb_model.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "searchers/axis.hpp"
#include "searchers/bohb/density.hpp"
#include "searchers/saved_search.hpp"

namespace troupe::tune {
namespace {

constexpr double kWorstScore = -std::numeric_limits<double>::infinity();

void check(const BohbModelOptions& options) {
  const auto refuse = [](std::string_view name, double value, std::string_view needs) {
    throw std::invalid_argument(fmt::format("tune::bohb_model: .{} is {}; {}", name, value, needs));
  };
  if (!(options.random >= 0 && options.random <= 1)) refuse("random", options.random, "0 to 1");
  if (!(options.good > 0 && options.good <= 0.5))
    refuse("good", options.good, "above 0, and at most 0.5");
  if (options.candidates == 0) refuse("candidates", 0, "at least 1");
  if (!(options.widening > 0 && options.widening <= 1e6))
    refuse("widening", options.widening, "above 0");
}

class BohbSearch final : public Searcher {
 public:
  BohbSearch(const BohbModelOptions& options, const SearchSetup& setup)
      : options_{options},
        setup_{setup},
        axes_{setup.space},
        random_{setup.space, setup.seed, setup.trials} {}

  Suggestion suggest(TrialId trial) override;
  void give(TrialId trial, const Configuration& configuration) override;
  void on_report(TrialId trial, std::int64_t t, double value) override;
  void on_end(TrialId trial, const TrialEnd& end) override;
  std::optional<std::uint64_t> size() const override { return setup_.trials; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  struct Value {
    TrialId trial = 0;
    double score = 0;
    std::vector<double> point = {};
  };
  using Rungs = std::map<std::int64_t, std::vector<Value>>;

  std::size_t least() const { return axes_.size() + 1; }
  std::size_t good_of(std::size_t n) const;
  void enter(std::int64_t t, Value value);
  std::vector<double> modelled(const std::vector<Value>& rung, Random& random) const;
  Json identity() const;

  BohbModelOptions options_;
  SearchSetup setup_;
  Axes axes_;
  RandomSearcher random_;
  std::map<TrialId, std::vector<double>> running_ = {};
  Rungs rungs_ = {};  // the model's, if there is one, is the lowest of them
};

std::size_t BohbSearch::good_of(std::size_t n) const {
  return std::max(least(), static_cast<std::size_t>(options_.good * static_cast<double>(n)));
}

/// Rungs below one with enough values are not needed any more.
void BohbSearch::enter(std::int64_t t, Value value) {
  if (!rungs_.empty() && t < rungs_.begin()->first && rungs_.begin()->second.size() >= 2 * least())
    return;
  auto& rung = rungs_[t];
  rung.push_back(std::move(value));
  if (rung.size() >= 2 * least()) rungs_.erase(rungs_.begin(), rungs_.find(t));
}

std::vector<double> BohbSearch::modelled(const std::vector<Value>& rung, Random& random) const {
  auto ranked = rung;
  std::ranges::stable_sort(ranked, std::greater<>(), &Value::score);
  const auto n = ranked.size(), good = good_of(n);
  const auto bad =
      std::max(least(), static_cast<std::size_t>((1 - options_.good) * static_cast<double>(n)));
  std::vector<std::vector<double>> good_points, bad_points;
  for (std::size_t i = 0; i < std::min(n, good + bad); ++i)
    (i < good ? good_points : bad_points).push_back(std::move(ranked[i].point));
  const KernelDensity likely(axes_, std::move(good_points)), other(axes_, std::move(bad_points));
  std::vector<double> best;
  double best_ratio = 0;
  for (std::size_t i = 0; i < options_.candidates; ++i) {
    auto x = likely.draw(random, options_.widening);
    const double ratio = likely.log_density(x) - other.log_density(x);
    if (!best.empty() && !(ratio > best_ratio)) continue;
    best = std::move(x);
    best_ratio = ratio;
  }
  return best;
}

Suggestion BohbSearch::suggest(TrialId trial) {
  if (trial >= setup_.trials) return NoMore{};
  Random random(setup_.seed, trial, "bohb_model/candidates");
  const bool is_random = random.unit() < options_.random;
  const bool has_model = !rungs_.empty() && rungs_.begin()->second.size() >= 2 * least();
  if (is_random || !has_model || axes_.size() == 0) {
    auto configuration = std::get<Configuration>(random_.suggest(trial));
    running_[trial] = axes_.point(configuration);
    return configuration;
  }
  auto point = modelled(rungs_.begin()->second, random);
  auto configuration = axes_.configuration(point, setup_.seed, trial);
  running_[trial] = std::move(point);
  return configuration;
}

void BohbSearch::give(TrialId trial, const Configuration& configuration) {
  running_[trial] = axes_.point(configuration);
}

void BohbSearch::on_report(TrialId trial, std::int64_t t, double value) {
  const auto at = running_.find(trial);
  if (at == running_.end()) return;
  enter(t, {trial, setup_.objective.score(value), at->second});
}

void BohbSearch::on_end(TrialId trial, const TrialEnd& end) {
  auto at = running_.extract(trial);
  if (at && end.errored) enter(end.t + 1, {trial, kWorstScore, std::move(at.mapped())});
}

Json BohbSearch::identity() const {
  auto json = search_identity("bohb_model", setup_);
  json["random"] = options_.random;
  json["good"] = options_.good;
  json["candidates"] = options_.candidates;
  json["widening"] = options_.widening;
  return json;
}

std::string BohbSearch::save() const {
  auto json = identity();
  auto& running = json["running"] = Json::array();
  for (const auto& [trial, point] : running_) running.push_back(Json::array({trial, point}));
  auto& rungs = json["rungs"] = Json::array();
  for (const auto& [t, values] : rungs_) {
    auto saved = Json::array();
    for (const auto& [trial, score, point] : values)
      saved.push_back(Json::array({trial, to_json(score), point}));
    rungs.push_back({{"t", t}, {"values", std::move(saved)}});
  }
  return dump(json);
}

void BohbSearch::load(std::string_view saved) {
  load_search(saved, identity(), [&](const Json& json) {
    const auto point_from = [&](const Json& each) {
      auto point = each.get<std::vector<double>>();
      if (point.size() != axes_.size())
        throw std::invalid_argument("a saved search has a point of another length");
      return point;
    };
    std::map<TrialId, std::vector<double>> running;
    for (const auto& each : json.at("running"))
      running[each.at(0).get<TrialId>()] = point_from(each.at(1));
    Rungs rungs;
    for (const auto& rung : json.at("rungs")) {
      auto& values = rungs[rung.at("t").get<std::int64_t>()];
      for (const auto& each : rung.at("values"))
        values.push_back(
            {each.at(0).get<TrialId>(), number_from(each.at(1)), point_from(each.at(2))});
    }
    running_ = std::move(running);
    rungs_ = std::move(rungs);
  });
}

}  // namespace

SearcherFactory bohb_model(BohbModelOptions options) {
  check(options);
  return [options](const SearchSetup& setup) {
    require_trials("tune::bohb_model", setup);
    return std::make_unique<BohbSearch>(options, setup);
  };
}

}  // namespace troupe::tune
