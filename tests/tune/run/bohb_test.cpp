// HyperBand with BOHB's model, which together are BOHB.
#include <troupe/tune.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "rounds.hpp"
#include "support/recording.hpp"

namespace bohb_test {

using namespace troupe;

namespace {

struct Config {
  double lr = 0.1;
  int layers = 1;
};

double error_of(const Config& config, std::int64_t t) {
  const double lr = std::log10(config.lr) + 2, layers = config.layers - 5;
  return lr * lr + 0.1 * layers * layers + 1.0 / static_cast<double>(t);
}

void train(tune::Context& ctx, const Config& config) {
  for (std::int64_t t = 1; t <= 27; ++t) {
    if (ctx.report({{"error", error_of(config, t)}}) == Verdict::Stop) return;
  }
}

tune::Options<Config> options(tune::SearcherFactory searcher, std::uint64_t seed = 5) {
  return {.space = {{"lr", tune::loguniform(1e-4, 1)}, {"layers", tune::integer(1, 8)}},
          .trials = 80,
          .metric = "error",
          .scheduler = tune::hyperband({.max_t = 27, .eta = 3}),
          .seed = seed,
          .searcher = std::move(searcher),
          .show = tune::Show::None,
          .in_process = true};
}

/// Of these, random search covers little.
struct Five {
  double a = 0, b = 0, c = 0, d = 0, e = 0;
};

/// The least error that a search of 200 trials finds, in virtual time.
double best_of_five(tune::SearcherFactory searcher, std::uint64_t seed) {
  const auto curve = [](const Five& at, std::int64_t t) {
    double sum = 0;
    for (const double x : {at.a, at.b, at.c, at.d, at.e}) sum += (x - 0.7) * (x - 0.7);
    return sum + 1.0 / static_cast<double>(t);
  };
  const auto unit = tune::uniform(0, 1);
  const tune::Options<Five> options{
      .space = {{"a", unit}, {"b", unit}, {"c", unit}, {"d", unit}, {"e", unit}},
      .trials = 200,
      .metric = "error",
      .scheduler = tune::hyperband({.max_t = 27, .eta = 3}),
      .seed = seed,
      .searcher = std::move(searcher),
      .show = tune::Show::None,
      .in_process = true};
  const tune::Simulation<Five> world{.curve = curve, .reports = 27, .gangs = 4};
  return tune::simulate(options, world).results.best().value();
}

tune::Experiment bohb(std::uint64_t seed) {
  const tune::Objective objective{"error", tune::Min};
  const tune::SearchSpace space{{"lr", tune::loguniform(1e-4, 1)}, {"layers", tune::integer(1, 8)}};
  return {{.objective = objective, .seed = seed, .max_failures = 1},
          tune::bohb_model()({.space = space, .objective = objective, .seed = seed, .trials = 30}),
          tune::hyperband({.max_t = 9, .eta = 3})(objective, seed)};
}

tune::FakeLauncher::Script script_of(std::uint64_t seed, std::size_t capacity) {
  tune::FakeLauncher::Script script{
      .capacity = capacity, .reports = 9, .checkpoints = true, .metric = "error"};
  script.value = [](const tune::Launch& launch, std::int64_t t) {
    return error_of(
        {.lr = std::get<double>(launch.config[0].second.value()),
         .layers = static_cast<int>(std::get<std::int64_t>(launch.config[1].second.value()))},
        t);
  };
  script.failure = [seed](const tune::Launch& launch,
                          std::int64_t t) -> std::optional<std::string> {
    const bool fails =
        launch.attempt == 1 && t == 1 && tune::Random(seed, launch.trial, "fails").below(6) == 0;
    return fails ? std::optional<std::string>("killed") : std::nullopt;
  };
  return script;
}

}  // namespace

TEST_CASE("HyperBand with BOHB's model pauses trials at rungs and learns from those that wait",
          "[tune][run][bohb]") {
  // [bohb]
  const auto results = tune::run<train>(
      {.space = {{"lr", tune::loguniform(1e-4, 1)}, {"layers", tune::integer(1, 8)}},
       .trials = 80,
       .metric = "error",
       .scheduler = tune::hyperband({.max_t = 27, .eta = 3}),
       .seed = 5,
       .searcher = tune::bohb_model(),
       .show = tune::Show::None,
       .in_process = true});
  // [/bohb]
  REQUIRE(results.trials().size() == 80);
  CHECK(results.best().trial.t == 27);
  // One band is 27, 12, 6 and 4 trials from t=1, 3, 9 and 27 on; the next one begins with 27, and
  // has four more.
  CHECK(results.rungs()[0].reached == 27);
  CHECK(results.rungs()[1].reached == 9);
  std::size_t paused = 0, at_random = 0, after_it = 0;
  const auto drawn = tune::run<train>(options({}));
  for (std::size_t trial = 0; trial < 80; ++trial) {
    const auto& [config, its, text] = results.trials()[trial];
    if (its.pauses > 0) ++paused;
    if (config.lr == drawn.trials()[trial].config.lr) ++(trial < 6 ? at_random : after_it);
  }
  CHECK(paused >= 27);
  CHECK(at_random == 6);  // the first rung has six values then, which the model needs
  CHECK(after_it > 8);    // a third is random at any time
  CHECK(after_it < 45);
}

TEST_CASE("BOHB finds better configurations of five fields than HyperBand at random",
          "[tune][run][bohb][quality]") {
  std::vector<double> modelled, at_random;
  for (std::uint64_t seed = 0; seed < 31; ++seed) {
    modelled.push_back(best_of_five(tune::bohb_model(), seed));
    at_random.push_back(best_of_five({}, seed));
  }
  std::ranges::sort(modelled);
  std::ranges::sort(at_random);
  CAPTURE(modelled, at_random);
  CHECK(modelled[15] < at_random[15]);
}

TEST_CASE("BOHB interrupted anywhere and taken up again ends as if nothing had happened",
          "[tune][bohb][hyperband][journal]") {
  const auto seed = GENERATE(5u, 6u);
  CAPTURE(seed);
  auto undisturbed = bohb(seed);
  const auto recording = tune::record(undisturbed, script_of(seed, 1));
  REQUIRE(recording.ends.size() > 100);
  const auto step = troupe::test::stride(3, recording.ends.size());
  std::size_t places = 0;
  for (std::size_t line = 1; line < recording.ends.size(); line += step, ++places) {
    CAPTURE(line);
    auto resumed = bohb(seed);
    if (places % 2 == 0) {
      resumed.load(recording.states[line]);
    } else {
      tune::replay(recording.journal.substr(0, recording.ends[line]), resumed);
    }
    REQUIRE(resumed.save() == recording.states[line]);
    resumed.requeue_running(tune::Seconds(0));
    tune::FakeLauncher cluster(script_of(seed, 1));
    tune::drive(resumed, cluster, {}, {});
    REQUIRE(tune::fate(resumed) == tune::fate(undisturbed));
    REQUIRE(resumed.searcher().save() == undisturbed.searcher().save());
  }
  CHECK(places > troupe::test::rounds(40));
}

TEST_CASE("BOHB's journal with several gangs gives every state again", "[tune][bohb][journal]") {
  auto original = bohb(7);
  const auto recording = tune::record(original, script_of(7, 4));
  for (std::size_t line = 0; line < recording.ends.size();
       line += troupe::test::stride(2, recording.ends.size())) {
    CAPTURE(line);
    auto replayed = bohb(7);
    tune::replay(recording.journal.substr(0, recording.ends[line]), replayed);
    REQUIRE(replayed.save() == recording.states[line]);
  }
}

}  // namespace bohb_test
