// Fields of structs in the configuration, fields under a condition, and fields that are computed.
#include <set>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "run/prepare.hpp"
#include "support/temporary_folder.hpp"

namespace conditional_test {

namespace tune = troupe::tune;
using namespace troupe::tune;

namespace {

struct Optimizer {
  std::string name = "sgd";
  double momentum = 0.5;
  double beta2 = 0.5;
};
struct Config {
  double lr = 0.1;
  Optimizer optimizer = {};
  int steps = 100;
  int warmup = 0;
  std::vector<int> widths = {};
};

bool is_sgd(const Config& config) { return config.optimizer.name == "sgd"; }

Space<Config> space() {
  return {{"optimizer.name", choice({"sgd", "adam"})},
          {"optimizer.momentum", uniform(0.8, 0.99), is_sgd},
          {"optimizer.beta2", uniform(0.9, 0.999),
           [](const Config& config) { return !is_sgd(config); }},
          {"steps", choice({100, 200})},
          {"warmup", [](const Config& config) { return config.steps / 10; }},
          {"lr", loguniform(1e-3, 1.0)}};
}

bool has(const Configuration& configuration, std::string_view name) {
  return std::ranges::find(configuration, name, &Configuration::value_type::first) !=
         configuration.end();
}

void reports_loss(Context& ctx, const Config& config) {
  const double best = is_sgd(config) ? config.optimizer.momentum : config.optimizer.beta2 + 1;
  ctx.report({{"loss", best + config.lr + config.warmup}});
}

Options<Config> options(std::uint64_t trials) {
  return {.space = space(),
          .trials = trials,
          .metric = "loss",
          .seed = 3,
          .show = Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE("the fields of a struct in the configuration are its own, by a name with a point",
          "[tune][space]") {
  constexpr auto names = tune::detail::field_names<Config>();
  STATIC_REQUIRE(names.size() == 7);
  STATIC_REQUIRE(names[1] == "optimizer.name");
  STATIC_REQUIRE(names[3] == "optimizer.beta2");
  STATIC_REQUIRE(names[6] == "widths");
  const auto config = configured(Config{}, {{"optimizer.beta2", 0.75}, {"warmup", 7}});
  CHECK(config.optimizer.beta2 == 0.75);
  CHECK(config.warmup == 7);
  CHECK(config.optimizer.momentum == 0.5);
  CHECK(Key<Config>(&Config::warmup).name() == "warmup");
  CHECK_THROWS_WITH(tune::checked<Config>({{"optimizer.beta2", "high"}}),
                    Catch::StartsWith("field 'optimizer.beta2' takes a number, not the text high"));
}

TEST_CASE("a field under a condition is left out where that does not hold", "[tune][space]") {
  const auto results = tune::run<reports_loss>(options(40));
  std::set<std::string> optimizers;
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text);
    CHECK(has(trial.config, "optimizer.momentum") == is_sgd(config));
    CHECK(has(trial.config, "optimizer.beta2") == !is_sgd(config));
    CHECK((is_sgd(config) ? config.optimizer.beta2 : config.optimizer.momentum) == 0.5);
    CHECK(config.warmup == config.steps / 10);
    optimizers.insert(config.optimizer.name);
  }
  CHECK(optimizers.size() == 2);
  CHECK_THAT(results.summary(), Catch::Contains("optimizer.name = sgd") &&
                                    Catch::Contains("warmup = 10") &&
                                    !Catch::Contains("optimizer.beta2"));
}

TEST_CASE("searches that learn, and what is given, go with conditions and functions",
          "[tune][space]") {
  auto wanted = options(30);
  wanted.searcher =
      GENERATE(tpe(), cmaes({.random_choices = true}), gaussian_process(), repeated(sobol(), 2));
  wanted.first = {{.lr = 0.5, .optimizer = {.name = "adam", .momentum = 77, .beta2 = 0.95}},
                  {.lr = 0.25, .optimizer = {.momentum = 0.9}, .steps = 200, .warmup = 3}};
  wanted.known = {{wanted.first[1], 20.0}};
  const auto results = tune::run<reports_loss>(wanted);
  REQUIRE(results.trials().size() == 30);
  const auto& [first, trial, text] = results.trials().front();
  CHECK(first.optimizer.beta2 == 0.95);
  CHECK(first.optimizer.momentum == 0.5);  // not what was given, as its condition does not hold
  CHECK(first.warmup == 10);
  CHECK(results.trials()[1].config.warmup == 20);
  CHECK(results.best().config.optimizer.name == "sgd");
}

TEST_CASE("points of a grid that come to the same are walked to once", "[tune][space]") {
  auto wanted = options(0);
  wanted.space = {{"optimizer.name", grid({"sgd", "adam"})},
                  {"optimizer.momentum", grid({0.8, 0.9, 0.95}), is_sgd},
                  {"lr", 0.125}};
  const auto results = tune::run<reports_loss>(wanted);
  std::set<std::string> points;
  for (const auto& trial : results.trials()) {
    std::string point;
    for (const auto& [name, value] : trial.trial.config) point += name + to_string(value);
    CHECK(points.insert(point).second);
  }
  CHECK(points.size() == 4);  // three with sgd, one with adam
}

TEST_CASE("a run with conditions goes on where it was, and not with other ones",
          "[tune][space][resume]") {
  const TemporaryFolder folder;
  auto wanted = options(12);
  wanted.storage = folder.path();
  wanted.searcher = tpe({.startup_trials = 3});
  const auto whole = tune::run<reports_loss>(wanted);
  const auto journal = whole.folder() / "journal.jsonl";
  auto text = content_of(journal);
  const auto middle = text.find('\n', text.size() / 2) + 1;
  std::filesystem::remove(whole.folder() / "summary.json");
  std::filesystem::resize_file(journal, middle);

  auto other = wanted;
  other.space.erase(other.space.begin() + 4);
  CHECK_THROWS_WITH(tune::resume<reports_loss>(whole.folder(), other),
                    Catch::Contains("searcher.computed is [\"warmup\"] there, [] here"));
  const auto again = tune::resume<reports_loss>(whole.folder(), wanted);
  REQUIRE(again.trials().size() == 12);
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(again.trials()[i].trial.config == whole.trials()[i].trial.config);
}

TEST_CASE("a population's scheduler refuses conditions and functions", "[tune][space]") {
  auto wanted = options(4);
  wanted.storage = "unused";
  wanted.scheduler = pbt({.interval = 2, .mutate = {{"lr", uniform(0, 1)}}});
  CHECK_THROWS_WITH(tune::run<reports_loss>(wanted),
                    Catch::Contains("make a plain domain of field 'warmup'"));
}

TEST_CASE("a function of the configuration that gives nothing of use is refused by its field",
          "[tune][space]") {
  auto wanted = options(4);
  wanted.space = {{"steps", 0}, {"lr", [](const Config& config) { return 1.0 / config.steps; }}};
  CHECK_THROWS_WITH(tune::run<reports_loss>(wanted),
                    Catch::Contains("computes field 'lr' cannot be used with steps=0: it is not "
                                    "finite"));
  wanted.space = {{"lr", [](const Config&) -> double { throw std::runtime_error("a typo"); }}};
  CHECK_THROWS_WITH(
      tune::run<reports_loss>(wanted),
      Catch::EndsWith("the function that computes field 'lr' cannot be used: a typo"));
}

}  // namespace conditional_test
