#include <troupe/tune/searchers/nsga2.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "objectives/front.hpp"
#include "searchers/axis.hpp"
#include "searchers/nsga2/variation.hpp"
#include "searchers/saved_search.hpp"
#include "searchers/trial_score.hpp"

namespace troupe::tune {
namespace {

constexpr int kMostTwins = 10;  // mutations of a child that is like another trial

void check(const Nsga2Options& options) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("tune::nsga2: " + what);
  };
  if (options.population < 2)
    refuse(fmt::format(".population is {}, at least 2", options.population));
  if (!(options.crossover >= 0 && options.crossover <= 1))
    refuse(fmt::format(".crossover is {}, 0 to 1", options.crossover));
  if (!(options.mutation >= 0 && options.mutation <= 1))
    refuse(fmt::format(".mutation is {}, 0 to 1", options.mutation));
  for (const auto& [name, index] : {std::pair("crossover_index", options.crossover_index),
                                    std::pair("mutation_index", options.mutation_index)}) {
    if (!(index >= 0) || !std::isfinite(index))
      refuse(fmt::format(".{} is {}, at least 0 and finite", name, index));
  }
}

/// A trial that ended.
struct Individual {
  TrialId trial = 0;
  GenePoint point = {};
  Scores scores = {};
  double violation = 0;  // of the constraints; infinite where it failed
};

/// One that children are bred from.
struct Parent {
  Individual individual = {};
  std::size_t front = 0;
  double distance = 0;  // crowding distance

  bool is_better(const Parent& than) const {
    return front != than.front ? front < than.front : distance > than.distance;
  }
};

/// The parents of the next generation: rule 4.
std::vector<Parent> selected(std::vector<Individual> all, std::size_t count) {
  std::ranges::sort(all, {}, &Individual::trial);
  std::vector<Scores> scores;
  std::vector<double> violations;
  for (const auto& each : all) {
    scores.push_back(each.scores);
    violations.push_back(each.violation);
  }
  std::vector<Parent> parents;
  std::size_t number = 0;
  for (const auto& places : non_dominated_fronts(scores, violations)) {
    std::vector<Scores> of_front;
    for (const auto place : places) of_front.push_back(scores[place]);
    const auto distances = crowding_distances(of_front);
    std::vector<Parent> front;
    for (std::size_t i = 0; i < places.size(); ++i)
      front.push_back({std::move(all[places[i]]), number, distances[i]});
    ++number;
    const auto room = count - parents.size();
    if (front.size() > room) {
      std::ranges::stable_sort(front, std::greater{}, &Parent::distance);
      front.resize(room);
    }
    std::ranges::move(front, std::back_inserter(parents));
    if (parents.size() == count) break;
  }
  return parents;
}

class Nsga2Search final : public Searcher {
 public:
  Nsga2Search(const Nsga2Options& options, const SearchSetup& setup)
      : options_{options},
        setup_{setup},
        axes_{setup.space},
        random_search_{setup.space, setup.seed, setup.trials} {}

  Suggestion suggest(TrialId trial) override;
  void give(TrialId trial, const Configuration& configuration) override {
    running_[trial] = axes_.point(configuration);
  }
  void on_end(TrialId trial, const TrialEnd& end) override;
  std::optional<std::uint64_t> size() const override { return setup_.trials; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  std::size_t objectives() const { return std::max<std::size_t>(1, setup_.objectives.size()); }
  Scores scores_of_end(const TrialEnd& end) const;
  const GenePoint& chosen_parent(Random& random) const;
  bool is_twin(const GenePoint& point) const;
  GenePoint bred(TrialId trial) const;
  Json identity() const;
  static Json saved_individual(const Individual& individual);
  GenePoint point_from(const Json& json) const;
  Individual individual_from(const Json& json) const;

  Nsga2Options options_;
  SearchSetup setup_;
  Axes axes_;
  RandomSearcher random_search_;
  std::vector<Parent> parents_ = {};    // empty in the first generation
  std::vector<Individual> ended_ = {};  // of this generation
  std::map<TrialId, GenePoint> running_ = {};
};

Scores Nsga2Search::scores_of_end(const TrialEnd& end) const {
  if (setup_.objectives.empty()) return {trial_score(end, setup_.objective)};
  return scores_of(setup_.objectives, end.errored ? std::vector<double>() : end.values);
}

const GenePoint& Nsga2Search::chosen_parent(Random& random) const {
  const auto& a = parents_[random.below(parents_.size())];
  const auto& b = parents_[random.below(parents_.size())];
  return (b.is_better(a) ? b : a).individual.point;
}

bool Nsga2Search::is_twin(const GenePoint& point) const {
  const auto is_same = [&](const Individual& each) { return each.point == point; };
  return std::ranges::any_of(parents_, is_same, &Parent::individual) ||
         std::ranges::any_of(ended_, is_same) ||
         std::ranges::any_of(running_, [&](const auto& each) { return each.second == point; });
}

GenePoint Nsga2Search::bred(TrialId trial) const {
  Random random(setup_.seed, trial, "nsga2/child");
  auto child = chosen_parent(random);
  if (random.unit() < options_.crossover) {
    const auto& other = chosen_parent(random);
    child = crossed(axes_, child, other, options_.crossover_index, random);
  }
  mutate(axes_, child, options_, random);
  for (int twins = 0; twins < kMostTwins && is_twin(child); ++twins) {
    const auto field = random.below(axes_.size());
    mutate_field(axes_[field], child[field], options_.mutation_index, random);
  }
  return child;
}

Suggestion Nsga2Search::suggest(TrialId trial) {
  if (trial >= setup_.trials) return NoMore{};
  if (parents_.empty()) {
    auto drawn = random_search_.suggest(trial);
    running_[trial] = axes_.point(std::get<Configuration>(drawn));
    return drawn;
  }
  auto point = bred(trial);
  auto configuration = axes_.configuration(point, setup_.seed, trial);
  running_[trial] = std::move(point);
  return configuration;
}

void Nsga2Search::on_end(TrialId trial, const TrialEnd& end) {
  auto at = running_.extract(trial);
  if (!at) return;
  auto scores = scores_of_end(end);
  // Without such scores a trial is behind all others, whatever it says of its constraints.
  const bool has_scores =
      !end.errored && std::ranges::all_of(scores, [](double each) { return std::isfinite(each); });
  const double violation = has_scores || setup_.constraints.empty()
                               ? end.violation
                               : std::numeric_limits<double>::infinity();
  ended_.push_back({trial, std::move(at.mapped()), std::move(scores), violation});
  if (ended_.size() < options_.population) return;
  for (auto& parent : parents_) ended_.push_back(std::move(parent.individual));
  parents_ = selected(std::exchange(ended_, {}), options_.population);
}

Json Nsga2Search::identity() const {
  auto json = search_identity("nsga2", setup_);
  json["population"] = options_.population;
  json["crossover"] = options_.crossover;
  json["mutation"] = options_.mutation;
  json["crossover_index"] = options_.crossover_index;
  json["mutation_index"] = options_.mutation_index;
  return json;
}

Json Nsga2Search::saved_individual(const Individual& individual) {
  auto scores = Json::array();
  for (const double score : individual.scores) scores.push_back(to_json(score));
  Json json{{"trial", individual.trial}, {"x", individual.point}, {"scores", std::move(scores)}};
  if (individual.violation != 0) json["violation"] = to_json(individual.violation);
  return json;
}

GenePoint Nsga2Search::point_from(const Json& json) const {
  auto point = json.get<GenePoint>();
  if (point.size() != axes_.size())
    throw std::invalid_argument("a saved search has a point of another length");
  return point;
}

Individual Nsga2Search::individual_from(const Json& json) const {
  Individual individual{json.at("trial").get<TrialId>(), point_from(json.at("x")), {}, 0};
  if (json.contains("violation")) individual.violation = number_from(json.at("violation"));
  for (const auto& score : json.at("scores")) individual.scores.push_back(number_from(score));
  if (individual.scores.size() != objectives())
    throw std::invalid_argument("a saved search has a result of another number of objectives");
  return individual;
}

std::string Nsga2Search::save() const {
  auto json = identity();
  auto& parents = json["parents"] = Json::array();
  for (const auto& parent : parents_) {
    parents.push_back(saved_individual(parent.individual));
    parents.back()["front"] = parent.front;
    parents.back()["distance"] = to_json(parent.distance);
  }
  auto& ended = json["ended"] = Json::array();
  for (const auto& each : ended_) ended.push_back(saved_individual(each));
  auto& running = json["running"] = Json::array();
  for (const auto& [trial, point] : running_) running.push_back({{"trial", trial}, {"x", point}});
  return dump(json);
}

void Nsga2Search::load(std::string_view saved) {
  load_search(saved, identity(), [&](const Json& json) {
    std::vector<Parent> parents;
    for (const auto& each : json.at("parents"))
      parents.push_back({individual_from(each), each.at("front").get<std::size_t>(),
                         number_from(each.at("distance"))});
    std::vector<Individual> ended;
    for (const auto& each : json.at("ended")) ended.push_back(individual_from(each));
    std::map<TrialId, GenePoint> running;
    for (const auto& each : json.at("running"))
      running[each.at("trial").get<TrialId>()] = point_from(each.at("x"));
    parents_ = std::move(parents);
    ended_ = std::move(ended);
    running_ = std::move(running);
  });
}

}  // namespace

SearcherFactory nsga2(Nsga2Options options) {
  check(options);
  return [options](const SearchSetup& setup) {
    require_trials("tune::nsga2", setup);
    if (Axes(setup.space).size() == 0)
      throw std::invalid_argument("tune::nsga2: the space has no field with more than one value");
    return std::make_unique<Nsga2Search>(options, setup);
  };
}

}  // namespace troupe::tune
