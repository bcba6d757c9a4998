#include <troupe/tune/searchers/bohb_model.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <unordered_set>
#include <utility>
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
  using Reports = std::map<std::int64_t, std::vector<Value>>;  // by t, each in the order of arrival

  std::size_t least() const { return axes_.size() + 1; }
  std::size_t good_of(std::size_t n) const;
  void enter(std::int64_t t, Value value);
  std::int64_t highest_rung() const;
  std::vector<Value> values_of_model() const;
  std::vector<double> modelled(Random& random) const;
  Json identity() const;

  BohbModelOptions options_;
  SearchSetup setup_;
  Axes axes_;
  RandomSearcher random_;
  std::map<TrialId, std::vector<double>> running_ = {};
  std::int64_t model_t_ = 0;  // the model's rung; 0: there is no model yet
  Reports reports_ = {};      // from the model's rung on
  // Of the trials that have such reports: the last of each, and how many have their last one where.
  std::map<TrialId, std::int64_t> last_ = {};
  std::map<std::int64_t, std::size_t> ends_ = {};
};

std::size_t BohbSearch::good_of(std::size_t n) const {
  return std::max(least(), static_cast<std::size_t>(options_.good * static_cast<double>(n)));
}

/// Reports below the model's rung are not needed any more.
void BohbSearch::enter(std::int64_t t, Value value) {
  if (t < model_t_) return;
  const auto [last, is_first] = last_.emplace(value.trial, t);
  if (!is_first) {
    const auto end = ends_.find(last->second);
    if (--end->second == 0) ends_.erase(end);
    last->second = std::max(last->second, t);
  }
  ++ends_[last->second];
  reports_[t].push_back(std::move(value));
  const auto rung = highest_rung();
  if (rung == model_t_) return;
  model_t_ = rung;
  reports_.erase(reports_.begin(), reports_.lower_bound(model_t_));
  ends_.erase(ends_.begin(), ends_.lower_bound(model_t_));
  std::erase_if(last_, [this](const auto& each) { return each.second < model_t_; });
}

/// The highest one that enough trials have come to; 0: there is none.
std::int64_t BohbSearch::highest_rung() const {
  std::size_t trials = 0;
  for (auto end = ends_.rbegin(); end != ends_.rend(); ++end) {
    trials += end->second;
    if (trials >= 2 * least()) return end->first;
  }
  return 0;
}

/// The first report of each trial that has come to the model's rung, there or behind it.
std::vector<BohbSearch::Value> BohbSearch::values_of_model() const {
  std::vector<Value> values;
  std::unordered_set<TrialId> had;
  for (const auto& [t, reports] : reports_) {
    if (had.size() == last_.size()) break;
    for (const auto& report : reports)
      if (had.insert(report.trial).second) values.push_back(report);
  }
  return values;
}

std::vector<double> BohbSearch::modelled(Random& random) const {
  auto ranked = values_of_model();
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
  if (is_random || model_t_ == 0 || axes_.size() == 0) {
    auto configuration = std::get<Configuration>(random_.suggest(trial));
    running_[trial] = axes_.point(configuration);
    return configuration;
  }
  auto point = modelled(random);
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
  for (const auto& [t, values] : reports_) {
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
    std::vector<std::pair<std::int64_t, Value>> reports;
    for (const auto& rung : json.at("rungs")) {
      for (const auto& each : rung.at("values")) {
        reports.emplace_back(
            rung.at("t").get<std::int64_t>(),
            Value{each.at(0).get<TrialId>(), number_from(each.at(1)), point_from(each.at(2))});
      }
    }
    running_ = std::move(running);
    model_t_ = 0;
    reports_.clear();
    last_.clear();
    ends_.clear();
    for (auto& [t, value] : reports) enter(t, std::move(value));
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
