#include <troupe/tune.hpp>

#include <cmath>
#include <string>

#include <catch2/catch.hpp>

namespace model_search_test {

using namespace troupe;

namespace {

struct Config {
  double lr = 0.1;
  int layers = 1;
  std::string kind = "sgd";
};

double error_of(const Config& config, std::int64_t t) {
  const double lr = std::log10(config.lr) + 2, layers = config.layers - 5;
  const double kind = config.kind == "adam" ? 0 : 0.5;
  return lr * lr + 0.1 * layers * layers + kind + 1.0 / static_cast<double>(t);
}

void train(tune::Context& ctx, const Config& config) {
  for (std::int64_t t = 1; t <= 9; ++t) {
    if (ctx.report({{"error", error_of(config, t)}}) == Verdict::Stop) return;
  }
}

tune::Options<Config> options(tune::SearcherFactory searcher) {
  return {.space = {{"lr", tune::loguniform(1e-4, 1)},
                    {"layers", tune::integer(1, 8)},
                    {"kind", tune::choice({"adam", "sgd", "lion"})}},
          .trials = 40,
          .metric = "error",
          .seed = 3,
          .searcher = std::move(searcher),
          .show = tune::Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE("a search in this process takes each of the searchers", "[tune][run][searcher]") {
  const auto searcher =
      GENERATE(tune::sobol(), tune::halton(), tune::tpe(), tune::tpe({.multivariate = false}),
               tune::cmaes({.random_choices = true}), tune::gaussian_process({.candidates = 64}));
  const auto results = tune::run<train>(options(searcher));
  REQUIRE(results.trials().size() == 40);
  CHECK(results.best().value() < 1);
  const auto again = tune::run<train>(options(searcher));
  for (std::size_t trial = 0; trial < 40; ++trial)
    CHECK(results.trials()[trial].config.lr == again.trials()[trial].config.lr);
}

TEST_CASE("TPE searches beside ASHA in this process", "[tune][run][tpe]") {
  // [searcher]
  const auto results = tune::run<train>({.space = {{"lr", tune::loguniform(1e-4, 1)},
                                                   {"layers", tune::integer(1, 8)},
                                                   {"kind", tune::choice({"adam", "sgd", "lion"})}},
                                         .trials = 100,
                                         .metric = "error",
                                         .scheduler = tune::asha({.max_t = 9, .eta = 3}),
                                         .seed = 3,
                                         .searcher = tune::tpe(),
                                         .show = tune::Show::None,
                                         .in_process = true});
  // [/searcher]
  CHECK(results.best().config.kind == "adam");
  CHECK(results.best().value() < 0.4);
}

TEST_CASE("TPE shows in a preview what it would find on a cluster", "[tune][run][tpe]") {
  auto wanted = options(tune::tpe());
  wanted.trials = 200;
  wanted.scheduler = tune::asha({.max_t = 9, .eta = 3});
  const tune::Simulation<Config> world{.curve = error_of, .reports = 9, .gangs = 16};
  const auto with_tpe = tune::simulate(wanted, world);
  wanted.searcher = {};
  const auto at_random = tune::simulate(wanted, world);
  REQUIRE(with_tpe.results.trials().size() == 200);
  CHECK(with_tpe.results.best().value() < at_random.results.best().value());
}

TEST_CASE("a searcher that cannot say how many trials it wants needs .trials",
          "[tune][run][searcher]") {
  auto wanted = options(tune::tpe());
  wanted.trials = 0;
  CHECK_THROWS_WITH(
      tune::run<train>(wanted),
      "tune: .trials is 0, and tune::tpe walks no grid that would say how many; give .trials");
}

}  // namespace model_search_test
