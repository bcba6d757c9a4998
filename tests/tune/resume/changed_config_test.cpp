// Runs whose fields that are not searched change from one driver to the next, and runs that are loaded with them.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/temporary_folder.hpp"

namespace changed_config_test {

namespace tune = troupe::tune;
using namespace troupe::tune;
using Catch::Contains;

namespace {

enum class Schedule { Constant, Cosine };

struct Model {
  int layers = 2;
  double dropout = 0;
};

struct Config {
  double lr = 0.5;
  int epochs = 3;
  double momentum = 0.9;
  int warmup = 0;
  Schedule schedule = Schedule::Cosine;
  std::vector<int> widths = {64, 32};
  double limit = std::numeric_limits<double>::infinity();
  std::optional<double> cap = std::numeric_limits<double>::quiet_NaN();
  std::string title = "\xff";                // no UTF-8
  std::uint64_t key = ~std::uint64_t{0};     // above the largest integer of a Scalar
  std::optional<std::string> data = "none";  // as one without a value is written
  Model model = {};
};

constexpr auto kWhole =
    std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing;

// Empty: nothing.
std::function<void(int epoch)> before_report;
std::function<void()> after_end;

void trains(Context& ctx, const Config& config) {
  for (int epoch = 1; epoch <= config.epochs; ++epoch) {
    if (before_report) before_report(epoch);
    if (ctx.report({{"loss", config.lr / epoch}}) == troupe::Verdict::Stop) break;
  }
  if (after_end) after_end();
}

Options<Config> options(const TemporaryFolder& folder, std::uint64_t trials, const Config& config) {
  return {.space = {{"lr", uniform(0, 1)},
                    {"model.layers", integer(1, 4)},
                    {"momentum", uniform(0, 1), [](const Config& c) { return c.lr > 0.5; }},
                    {"warmup", [](const Config& c) { return static_cast<int>(10 * c.lr); }}},
          .trials = trials,
          .metric = "loss",
          .storage = folder.path(),
          .resume = true,
          .seed = 3,
          .config = config,
          .show = Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE("a run that goes on with other values of fields that are not searched names each",
          "[tune][resume]") {
  const TemporaryFolder folder;
  Config config;
  tune::run<trains>(options(folder, 2, config));

  const auto alike = tune::run<trains>(options(folder, 4, config));
  CHECK_THAT(alike.summary(), !Contains(".config"));

  config.epochs = 5;
  config.schedule = Schedule::Constant;
  config.widths = {128};
  config.momentum = 0.5;  // of trials without it
  config.warmup = 7;      // computed in every trial
  config.model = {9, 0.25};
  const auto changed = tune::run<trains>(options(folder, 6, config));
  const auto told = [](const std::string& field, const std::string& was, const std::string& is) {
    return Contains("field '" + field + "' of .config was " + was +
                    " in this run until now, and is " + is + " in the attempts that begin now");
  };
  const auto summary = changed.summary();
  CHECK_THAT(summary, told("epochs", "3", "5"));
  CHECK_THAT(summary, told("schedule", "\"Cosine\"", "\"Constant\""));
  CHECK_THAT(summary, told("widths", "\"[64, 32]\"", "\"[128]\""));
  CHECK_THAT(summary, told("momentum", "0.9", "0.5"));
  CHECK_THAT(summary, told("model.dropout", "0.0", "0.25"));
  for (const auto* field :
       {"'lr'", "'warmup'", "'model.layers'", "'limit'", "'cap'", "'title'", "'key'", "'data'"})
    CHECK_THAT(summary, !Contains(std::string("field ") + field + " of .config"));
  CHECK(changed.trials().at(3).trial.t == 3);
  CHECK(changed.trials().at(5).trial.t == 5);

  const auto again = tune::run<trains>(options(folder, 7, config));
  CHECK_THAT(again.summary(), !Contains(".config"));
  CHECK(again.folder() == changed.folder());
}

TEST_CASE("a trial keeps the fields that are not searched, though its run went on with others",
          "[tune][resume][load]") {
  const TemporaryFolder folder;
  tune::run<trains>(options(folder, 2, {.epochs = 2, .widths = {1}}));
  tune::run<trains>(options(folder, 3, {.epochs = 2, .widths = {1}}));
  tune::run<trains>(options(folder, 5, {.epochs = 3, .widths = {2}, .model = {.dropout = 0.5}}));
  const auto changed = tune::run<trains>(options(folder, 6, {.epochs = 4, .widths = {3}}));
  const auto over = tune::resume<trains>(changed.folder(), options(folder, 6, {.epochs = 9}));
  const auto loaded = tune::load<Config>(changed.folder());
  const auto& results = GENERATE_REF(changed, over, loaded);
  REQUIRE(results.trials().size() == 6);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO("trial " << trial.id);
    const int which = trial.id < 3 ? 1 : trial.id < 5 ? 2 : 3;
    CHECK(config.epochs == 1 + which);
    CHECK(trial.t == config.epochs);
    CHECK(config.widths == std::vector<int>{which});
    CHECK(config.model.dropout == (which == 2 ? 0.5 : 0));
    CHECK(config.limit == std::numeric_limits<double>::infinity());
    if (&results != &loaded) CHECK(config.title == "\xff");
  }
  const auto& best = results.best();
  CHECK(best.config.epochs == best.trial.t);
  for (const auto& known : results.known()) CHECK(known.config.epochs < 5);
  CHECK(tune::load<Config>(changed.folder(), {.epochs = 7}).trials().front().config.epochs == 7);
}

TEST_CASE("an attempt that begins after its run was killed has the new .config", "[tune][resume]") {
  const TemporaryFolder folder, killed;
  int begun = 0;
  before_report = [&](int epoch) {
    begun += epoch == 1;
    if (begun == 2 && epoch == 3) std::filesystem::copy(folder.path(), killed.path(), kWhole);
  };
  tune::run<trains>(options(folder, 3, {.epochs = 3}));
  before_report = {};
  const auto rest = tune::run<trains>(options(killed, 3, {.epochs = 5}));
  const auto loaded = tune::load<Config>(killed.path());
  const auto& results = GENERATE_REF(rest, loaded);
  REQUIRE(results.trials().size() == 3);
  const auto config_of = [&](TrialId id) { return results.trials().at(id).config; };
  CHECK(config_of(0).epochs == 3);
  CHECK(config_of(1).epochs == 5);
  CHECK(config_of(2).epochs == 5);
  CHECK(results.trials().at(1).trial.t == 5);
}

TEST_CASE("a trial that was told to end before its run was killed keeps the old .config",
          "[tune][resume]") {
  const TemporaryFolder folder, killed;
  int ended = 0;
  after_end = [&] {
    if (++ended == 3) std::filesystem::copy(folder.path(), killed.path(), kWhole);
  };
  auto first = options(folder, 3, {.epochs = 9});
  first.stop.reports = 2;
  tune::run<trains>(first);
  after_end = {};
  auto second = options(killed, 3, {.epochs = 5});
  second.stop.reports = 2;
  const auto rest = tune::run<trains>(second);
  REQUIRE(rest.trials().size() == 3);
  for (const auto& each : rest.trials()) CHECK(each.config.epochs == 9);
  CHECK(ended == 3);
  CHECK_THAT(rest.summary(), !Contains(".config"));
}

TEST_CASE("a value of .config that no file can hold is named once it is lost", "[tune][resume]") {
  const TemporaryFolder folder;
  tune::run<trains>(options(folder, 2, {.key = 5}));
  const auto changed = tune::run<trains>(options(folder, 3, {}));
  CHECK_THAT(changed.summary(), Contains("field 'key' of .config was 5 in this run until now, and "
                                         "has no value that a file can have"));
  CHECK(changed.trials().front().config.key == 5);
  CHECK(changed.trials().back().config.key == ~std::uint64_t{0});
}

TEST_CASE("a run is only said to teach a search of its own objective", "[tune][resume]") {
  const TemporaryFolder folder;
  tune::run<trains>(options(folder, 2, {}));
  auto other = options(folder, 4, {});
  other.seed = 4;
  CHECK_THROWS_WITH(tune::resume<trains>(folder.path() / "run-1", other), Contains(".known = "));
  other.mode = Max;
  CHECK_THROWS_WITH(tune::resume<trains>(folder.path() / "run-1", other),
                    Contains("mode is \"min\" there, \"max\" here") && !Contains(".known"));
}

TEST_CASE("a run of a version that wrote no .config down goes on without a word of it",
          "[tune][resume]") {
  const TemporaryFolder folder;
  const auto first = tune::run<trains>(options(folder, 2, {}));
  const auto params = first.folder() / "params.json";
  auto text = content_of(params);
  REQUIRE_THAT(text, Contains("\"config\": {"));
  text.replace(text.find("\"config\": {"), 8, "\"other\"");
  std::ofstream(params) << text;
  const auto more = tune::run<trains>(options(folder, 3, {.epochs = 4}));
  CHECK(more.folder() == first.folder());
  CHECK_THAT(more.summary(), !Contains(".config"));
}

TEST_CASE("a run that is over and is not gone on with keeps its .config", "[tune][resume]") {
  const TemporaryFolder folder;
  const auto first = tune::run<trains>(options(folder, 2, {}));
  const auto again = tune::resume<trains>(first.folder(), options(folder, 2, {.epochs = 4}));
  CHECK_THAT(again.summary(), !Contains(".config"));
  CHECK(tune::load<Config>(folder.path()).best().config.epochs == 3);
}

TEST_CASE("a damaged .config of a run's folder is none", "[tune][load]") {
  const TemporaryFolder folder;
  const auto first = tune::run<trains>(options(folder, 2, {.epochs = 4}));
  const std::string config = GENERATE(
      "7", "[1]", R"({}, "earlier_configs": 7)", R"({}, "earlier_configs": [1, {"attempts": 2}])",
      R"({}, "earlier_configs": [{"attempts": [9, "x", null], "config": {"epochs": null}}])",
      R"({"epochs": null, "lr": [1], "data": {"a": 1}, "schedule": 1e999, "widths": "x"})");
  std::ofstream(first.folder() / "params.json") << "{\"config\": " << config << "}";
  CHECK(tune::load<Config>(folder.path()).best().config.epochs == 3);
  const auto more = tune::run<trains>(options(folder, 3, {.epochs = 5}));
  CHECK(more.trials().size() == 3);
  CHECK(more.trials().back().config.epochs == 5);
}

TEST_CASE("a loaded run has the fields that were not searched as it was given them",
          "[tune][load]") {
  const TemporaryFolder folder;
  const auto results = tune::run<trains>(options(folder, 3,
                                                 {.epochs = 4,
                                                  .schedule = Schedule::Constant,
                                                  .widths = {8},
                                                  .limit = -std::numeric_limits<double>::infinity(),
                                                  .cap = std::numeric_limits<double>::infinity(),
                                                  .model = {1, 0.5}}));
  const auto loaded = tune::load<Config>(folder.path()).best().config;
  CHECK(loaded.lr == results.best().config.lr);
  CHECK(loaded.epochs == 4);
  CHECK(loaded.schedule == Schedule::Constant);
  CHECK(loaded.widths == std::vector<int>{8});
  CHECK(loaded.model.dropout == 0.5);
  CHECK(loaded.cap == std::numeric_limits<double>::infinity());
  CHECK(loaded.limit == -std::numeric_limits<double>::infinity());
  CHECK(loaded.model.layers == results.best().config.model.layers);
  const auto given = tune::load<Config>(folder.path(), {.epochs = 9}).best().config;
  CHECK(given.epochs == 9);
  CHECK(given.schedule == Schedule::Cosine);

  // A program whose type has changed.
  struct Other {
    double lr = 0;
    double momentum = 0;
    int warmup = 0;
    std::string epochs = "many";
    Model model = {};
  };
  const auto other = tune::load<Other>(folder.path()).best().config;
  CHECK(other.epochs == "many");
  CHECK(other.model.dropout == 0.5);
}

}  // namespace changed_config_test
