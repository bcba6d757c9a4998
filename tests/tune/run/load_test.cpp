// The results of earlier runs, by their folders alone.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/temporary_folder.hpp"

namespace load_test {

namespace tune = troupe::tune;
using namespace troupe::tune;
using Catch::Contains;

namespace {

struct Config {
  double lr = 0.5;
  int width = 4;
  std::string note = "not searched";
};

void trains(Context& ctx, const Config& config) {
  for (int step = 1; step <= 9; ++step) {
    const double loss = config.lr * config.lr + 1.0 / (step * config.width);
    if (ctx.report({{"loss", loss}, {"size", config.width}}) == troupe::Verdict::Stop) return;
  }
}

/// One trial in three throws, one reports NaN alone, one trains.
void fails_now_and_then(Context& ctx, const Config& config) {
  ctx.report({{"loss", config.width % 3 == 1 ? NAN : config.lr}});
  if (config.width % 3 == 0) throw std::runtime_error("no luck");
}

Options<Config> options(const TemporaryFolder& folder) {
  return {.space = {{"lr", uniform(-1, 1)}, {"width", integer(1, 32)}},
          .trials = 12,
          .metric = "loss",
          .scheduler = asha({.max_t = 9, .eta = 3}),
          .storage = folder.path(),
          .seed = 5,
          .show = Show::None,
          .in_process = true};
}

std::vector<std::string> texts_of(const Results<Config>& results) {
  std::vector<std::string> texts;
  for (const auto& [config, trial, text] : results.trials())
    texts.push_back(text + ", " + std::string(to_string(trial.status)) + ", " + trial.reason);
  return texts;
}

void require_same(const Results<Config>& loaded, const Results<Config>& results) {
  CHECK(texts_of(loaded) == texts_of(results));
  CHECK(loaded.best().trial.id == results.best().trial.id);
  CHECK(loaded.best().config.lr == results.best().config.lr);
  CHECK(loaded.best().value() == results.best().value());
  CHECK(loaded.rungs().size() == results.rungs().size());
  CHECK(loaded.folder() == results.folder());
  CHECK(loaded.ended_early() == results.ended_early());
}

}  // namespace

TEST_CASE("a run that is over is loaded as it returned, by its folder or its storage's",
          "[tune][load]") {
  const TemporaryFolder folder;
  const auto results = tune::run<trains>(options(folder));
  require_same(tune::load<Config>(results.folder()), results);
  require_same(tune::load<Config>(folder.path()), results);
  const auto with_note = tune::load<Config>(folder.path(), {.note = "mine"});
  CHECK(with_note.best().config.note == "mine");
  CHECK(with_note.best().config.width == results.best().config.width);
}

TEST_CASE("a run that was killed is loaded with what it had", "[tune][load]") {
  const TemporaryFolder folder;
  const auto results = tune::run<trains>(options(folder));
  const auto journal = results.folder() / "journal.jsonl";
  const auto text = content_of(journal);
  std::filesystem::remove(results.folder() / "summary.json");
  std::filesystem::resize_file(journal, text.find('\n', text.size() / 2) + 1);
  const auto loaded = tune::load<Config>(folder.path());
  CHECK(loaded.trials().size() > 1);
  CHECK(loaded.trials().size() < results.trials().size());
  CHECK(texts_of(loaded).front() == texts_of(results).front());
  CHECK(loaded.ended_early().empty());
  CHECK(content_of(journal).size() < text.size());
}

TEST_CASE("a run whose journal goes on from a snapshot is loaded alike", "[tune][load]") {
  const TemporaryFolder folder;
  auto with_snapshot = options(folder);
  with_snapshot.snapshot_after = 2'000;
  const auto results = tune::run<trains>(with_snapshot);
  REQUIRE(std::filesystem::exists(results.folder() / "snapshot.jsonl"));
  require_same(tune::load<Config>(folder.path()), results);
}

TEST_CASE("what a loaded run found is known to another search", "[tune][load]") {
  const TemporaryFolder folder;
  const auto results = tune::run<trains>(options(folder));
  auto more = options(folder);
  more.storage.clear();
  // [known]
  more.known = tune::load<Config>(results.folder()).known();
  more.searcher = tune::tpe();
  // [/known]
  REQUIRE(more.known.size() == results.trials().size());
  for (std::size_t i = 0; i < more.known.size(); ++i) {
    CHECK(more.known[i].value == results.trials()[i].value());
    CHECK(more.known[i].config.lr == results.trials()[i].config.lr);
  }
  // Twelve known trials are more than the ten at random with which TPE begins.
  auto opposite = more;
  for (auto& each : opposite.known) each.value = -each.value;
  CHECK(tune::run<trains>(more).trials().front().config.lr !=
        tune::run<trains>(opposite).trials().front().config.lr);
}

TEST_CASE(
    "what a run found is refused by a search for something else, unless it is said to be the same",
    "[tune][load]") {
  const TemporaryFolder folder;
  const auto known = tune::run<trains>(options(folder)).known();
  auto other = options(folder);
  other.storage.clear();
  other.known = known;
  other.mode = Max;
  CHECK_THROWS_WITH(
      tune::run<trains>(other),
      Catch::StartsWith("tune: .known[0] was found by a search for the lowest 'loss', "
                        "and this one is for the highest 'loss'"));
  other.mode = Min;
  other.metric.clear();
  other.objectives = {{"loss", tune::Min}, {"size", tune::Min}};
  other.scheduler = fifo();
  CHECK_THROWS_WITH(
      tune::run<trains>(other),
      Catch::Contains("this one is for the lowest 'loss' and the lowest 'size'; where "
                      "both mean the same, clear the .objectives of each"));
  other = options(folder);
  other.storage.clear();
  other.metric = "size";
  other.known = known;
  for (auto& each : other.known) each.objectives.clear();
  CHECK(tune::run<trains>(other).trials().size() == other.trials);
}

TEST_CASE("a trial without a finite value is known as NaN, and one that failed is not",
          "[tune][load]") {
  const TemporaryFolder folder;
  auto some_fail = options(folder);
  some_fail.scheduler = fifo();
  const auto results = tune::run<fails_now_and_then>(some_fail);
  std::size_t failed = 0, diverged = 0;
  for (const auto& each : results.trials()) {
    failed += each.trial.status == Status::Errored;
    diverged += each.trial.status != Status::Errored && !each.trial.best;
  }
  REQUIRE(failed > 0);
  REQUIRE(diverged > 0);
  const auto known = tune::load<Config>(folder.path()).known();
  CHECK(known.size() == results.trials().size() - failed);
  const auto is_nan = [](const KnownResult<Config>& each) { return std::isnan(each.value); };
  CHECK(std::size_t(std::ranges::count_if(known, is_nan)) == diverged);
}

TEST_CASE("a loaded run with several objectives has its front and the values of all",
          "[tune][load]") {
  const TemporaryFolder folder;
  auto both = options(folder);
  both.metric.clear();
  both.objectives = {{"loss", tune::Min}, {"size", tune::Min}};
  both.scheduler = fifo();
  const auto results = tune::run<trains>(both);
  const auto loaded = tune::load<Config>(folder.path());
  REQUIRE(loaded.pareto_front().size() == results.pareto_front().size());
  CHECK(loaded.pareto_front().front().text == results.pareto_front().front().text);
  both.known = loaded.known();
  REQUIRE(both.known.size() == 12);
  CHECK(both.known.front().values == results.trials().front().trial.values);
  both.searcher = nsga2({.population = 4});
  CHECK(tune::run<trains>(both).trials().size() == 12);
}

TEST_CASE("a folder without a run, and a run of another type, are refused by name",
          "[tune][load]") {
  struct Other {
    double lr = 0;
  };
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(tune::load<Config>(folder.path()),
                    Contains(folder.path().string()) && Contains("has no run"));
  const auto results = tune::run<trains>(options(folder));
  CHECK_THROWS_AS(tune::load<Other>(folder.path()), std::invalid_argument);
  CHECK_THROWS_WITH(tune::load<Other>(folder.path()),
                    Contains(results.folder().string()) && Contains("'width'"));
}

}  // namespace load_test
