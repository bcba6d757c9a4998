#include "importance/importance.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include <troupe/tune/searcher.hpp>

namespace importance_test {

using namespace troupe::tune;

namespace {

const SearchSpace kSpace{{"x", uniform(0, 1)},
                         {"y", loguniform(1e-3, 1)},
                         {"kind", choice({"a", "b", "c"})},
                         {"constant", 1}};
const Objective kLowest{"loss", Min};

/// Drawn at random; their best value is a function of the configuration.
template <class Value>
std::vector<Trial> trials_with(std::size_t count, Value value) {
  RandomSearcher random(kSpace, 1, count);
  std::vector<Trial> trials;
  for (TrialId id = 0; id < count; ++id) {
    auto config = std::get<Configuration>(random.suggest(id));
    const double best = value(config);
    trials.push_back({.id = id, .config = std::move(config), .best = best});
  }
  return trials;
}

double number_of(const Configuration& config, std::size_t field) {
  return std::get<double>(config[field].second.value());
}
double x_of(const Configuration& config) { return number_of(config, 0); }

const FieldImportance& of(const Importance& importance, const std::string& name) {
  const auto at = std::ranges::find(importance.fields, name, &FieldImportance::name);
  REQUIRE(at != importance.fields.end());
  return *at;
}

}  // namespace

TEST_CASE("the field that decides is the important one", "[tune][importance]") {
  const auto by_x = importance(kSpace, kLowest, trials_with(300, [](const Configuration& config) {
                                 return std::abs(x_of(config) - 0.3);
                               }));
  CHECK(by_x.trials == 300);
  CHECK(by_x.warning.empty());
  REQUIRE(by_x.fields.size() == 3);
  CHECK(by_x.fields[0].name == "x");
  CHECK(*by_x.fields[0].fanova > 0.97);
  CHECK(*by_x.fields[0].ped_anova > 0.85);
  double sum = 0;
  for (const auto& field : by_x.fields) sum += *field.ped_anova;
  CHECK(sum == Approx(1));

  const auto by_kind =
      importance(kSpace, kLowest, trials_with(300, [](const Configuration& config) {
                   const bool is_c = config[2].second == Scalar("c");
                   return (is_c ? 0 : 1) + 0.001 * std::fmod(1000 * x_of(config), 1);
                 }));
  CHECK(by_kind.fields[0].name == "kind");
  CHECK(*by_kind.fields[0].fanova > 0.97);
}

TEST_CASE("a log range counts by its logarithms", "[tune][importance]") {
  // Each decade of y as much as another: with the values themselves nine tenths of the range lie in
  // the last one, where y hardly decides.
  const auto found = importance(kSpace, kLowest, trials_with(300, [](const Configuration& config) {
                                  return std::log10(number_of(config, 1)) + 3 * x_of(config);
                                }));
  CHECK(*of(found, "y").fanova == Approx(0.5).margin(0.06));
  CHECK(*of(found, "x").fanova == Approx(0.5).margin(0.06));
  CHECK(*of(found, "kind").fanova < 0.03);
}

TEST_CASE("the best are the highest where the highest is looked for", "[tune][importance]") {
  const auto trials = trials_with(300, [](const Configuration& config) {
    // Below 0.5 all are the same; above, x decides who is best.
    return x_of(config) < 0.5 ? 0.0 : x_of(config);
  });
  CHECK(*of(importance(kSpace, {"score", Max}, trials), "x").ped_anova > 0.85);
}

TEST_CASE("of few trials there is no importance, and of less than a hundred a warning",
          "[tune][importance]") {
  const auto of_trials = [](std::size_t count) {
    return importance(kSpace, kLowest, trials_with(count, x_of));
  };
  CHECK(of_trials(4).fields.empty());
  CHECK(of_trials(4).warning ==
        "Trials with a value: 4. Below 10 no importance of the fields is shown, as it would be "
        "chance.");
  CHECK(of_trials(9).fields.empty());
  CHECK(of_trials(10).fields.size() == 3);
  CHECK(of_trials(99).warning ==
        "Trials with a value: 99. Below 100 these importances are uncertain: other trials of the "
        "same space may give quite different ones.");
  CHECK(of_trials(100).warning.empty());
  const auto of_none = importance({{"constant", 1}}, kLowest, trials_with(200, x_of));
  CHECK(of_none.fields.empty());
  CHECK(of_none.warning == "No field is searched, so that none has an importance.");
}

TEST_CASE("trials that failed or have no finite value are not counted", "[tune][importance]") {
  auto trials = trials_with(40, x_of);
  trials[3].status = Status::Errored;
  trials[3].best = 1e9;
  trials[5].best = {};
  trials[7].best = {};
  const auto found = importance(kSpace, kLowest, trials);
  CHECK(found.trials == 37);
  CHECK(*of(found, "x").fanova > 0.9);
}

TEST_CASE("a metric that never changes makes every field unimportant", "[tune][importance]") {
  const auto found =
      importance(kSpace, kLowest, trials_with(120, [](const Configuration&) { return 0.5; }));
  REQUIRE(found.fields.size() == 3);
  for (const auto& field : found.fields) CHECK(field.fanova == 0.0);
}

TEST_CASE("a field that not every trial has is judged among those that have it, without fANOVA",
          "[tune][importance]") {
  auto trials = trials_with(120, x_of);
  for (std::size_t i = 0; i < trials.size(); i += 2)
    std::erase_if(trials[i].config, [](const auto& field) { return field.first == "y"; });
  const auto found = importance(kSpace, kLowest, trials);
  CHECK_FALSE(of(found, "y").fanova);
  CHECK(of(found, "y").ped_anova);
  CHECK(found.fields.back().name == "y");
  CHECK(*of(found, "x").fanova > 0.95);
}

TEST_CASE("a field that too few trials have is named beside the importances",
          "[tune][importance]") {
  auto trials = trials_with(120, x_of);
  for (std::size_t i = kLeastTrialsForImportance - 1; i < trials.size(); ++i)
    std::erase_if(trials[i].config, [](const auto& field) { return field.first == "y"; });
  const auto found = importance(kSpace, kLowest, trials);
  CHECK(found.fields.size() == 2);
  CHECK(found.warning ==
        "Too few trials have a value of these fields in the space to say how much they decide: y.");
}

TEST_CASE("a trial outside of the space is in no model of it", "[tune][importance]") {
  auto trials = trials_with(120, x_of);
  trials[0].config[0].second = Scalar(7.5);
  trials[0].best = 1e6;
  CHECK(*of(importance(kSpace, kLowest, trials), "x").fanova > 0.95);
}

}  // namespace importance_test
