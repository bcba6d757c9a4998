// Which checkpoints of a run stay, and which are deleted.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <troupe/tune.hpp>

#include "support/temporary_folder.hpp"

namespace checkpoint_keeper_test {

using namespace troupe;
namespace fs = std::filesystem;

namespace {

struct Config {
  double lr = 0;
  std::string elsewhere = {};
  int interrupted_at = 0;  // the report before which somebody presses Ctrl-C
};

fs::path written(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "weights") << "of this checkpoint\n";
  return folder;
}

/// Accuracies 3 1 5 2 4 6 0 with checkpoints 1 to 7, in its own folder or elsewhere.
void up_and_down(tune::Context& ctx, const Config& config) {
  int t = 0;
  const auto folder = config.elsewhere.empty() ? ctx.storage() : fs::path(config.elsewhere);
  for (const double accuracy : {3, 1, 5, 2, 4, 6, 0}) {
    const auto checkpoint = written(folder / ("checkpoint-" + std::to_string(++t)));
    ctx.report({{"accuracy", accuracy}}, checkpoint);
  }
}

/// Its best report, the third, comes without a checkpoint, and the one before it is the worst.
void best_has_none(tune::Context& ctx, const Config&) {
  int t = 0;
  for (const double accuracy : {3, 1, 9, 2, 4, 6, 0}) {
    ++t;
    if (t == 3) {
      ctx.report({{"accuracy", accuracy}});
      continue;
    }
    const auto checkpoint = written(ctx.storage() / ("checkpoint-" + std::to_string(t)));
    ctx.report({{"accuracy", accuracy}}, checkpoint);
  }
}

/// The same accuracy, again and again.
void is_constant(tune::Context& ctx, const Config&) {
  for (int t = 1; t <= 6; ++t) {
    const auto checkpoint = written(ctx.storage() / std::to_string(t));
    if (ctx.report({{"accuracy", 1}}, checkpoint) == Verdict::Stop) return;
  }
}

/// Learns as fast as its rate, and goes on from its checkpoint; fails where that is gone.
void learns(tune::Context& ctx, const Config& config) {
  int t = 0;
  if (const auto& from = ctx.restore_from(); !from.empty())
    if (!(std::ifstream(from / "t") >> t)) throw std::runtime_error("gone: " + from.string());
  while (++t <= 12) {
    if (t == config.interrupted_at) ::raise(SIGINT);
    const auto checkpoint = written(ctx.storage() / std::to_string(t));
    std::ofstream(checkpoint / "t") << t << '\n';
    if (ctx.report({{"accuracy", config.lr * t}}, checkpoint) == Verdict::Stop) return;
  }
}

/// Like learns, but for a trial that begins: it deletes what the others are paused with.
void takes_others_away(tune::Context& ctx, const Config& config) {
  if (ctx.restore_from().empty()) {
    const fs::path own = ctx.storage();
    std::error_code none;
    for (const auto& other : fs::directory_iterator(own.parent_path(), none))
      if (other.path() != own) fs::remove_all(other.path() / "3");
  }
  learns(ctx, config);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

tune::Options<Config> one_trial(const fs::path& storage, std::size_t keep) {
  return {.space = {{"lr", tune::grid({1.0})}},
          .metric = "accuracy",
          .mode = tune::Max,
          .storage = storage,
          .keep_checkpoints = keep,
          .show = tune::Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE("of each trial the best checkpoints stay, and the last one", "[tune][checkpoint]") {
  const tune::TemporaryFolder folder;
  const auto left = [&](std::size_t keep) {
    const auto results = tune::run<up_and_down>(one_trial(folder.path(), keep));
    return names_in(fs::path(results.folder()) / "trials" / "0");
  };
  CHECK(left(1) == std::set<std::string>{"checkpoint-6", "checkpoint-7"});
  CHECK(left(2) == std::set<std::string>{"checkpoint-3", "checkpoint-6", "checkpoint-7"});
  CHECK(left(0).size() == 7);
  CHECK(left(9).size() == 7);
}

TEST_CASE("the checkpoint of the best report is named in the results, and stays",
          "[tune][checkpoint]") {
  const tune::TemporaryFolder folder;
  const auto results = tune::run<up_and_down>(one_trial(folder.path(), 1));
  const auto trials = results.folder() / "trials" / "0";
  CHECK(results.best().checkpoint() == trials / "checkpoint-6");
  CHECK(fs::exists(results.best().checkpoint()));
  CHECK_THAT(results.summary(),
             Catch::Contains("    its checkpoint: " + results.best().checkpoint().string() + "\n"));
  std::ifstream in(results.folder() / "summary.json");
  const auto summary = nlohmann::json::parse(in);
  CHECK(summary.at("best").at("best_checkpoint") == "./trials/0/checkpoint-6");
  CHECK(summary.at("best").at("best_checkpoint_t") == 6);
}

TEST_CASE("where the best report has no checkpoint, the one before it stays",
          "[tune][checkpoint]") {
  const tune::TemporaryFolder folder;
  const auto results = tune::run<best_has_none>(one_trial(folder.path(), 1));
  const auto trials = results.folder() / "trials" / "0";
  CHECK(results.best().trial.best_t == 3);
  CHECK(results.best().checkpoint() == (trials / "checkpoint-2").string());
  CHECK(names_in(trials) == std::set<std::string>{"checkpoint-2", "checkpoint-6", "checkpoint-7"});
  CHECK_THAT(results.summary(), Catch::Contains("    its checkpoint (of t=2): "));
}

TEST_CASE("of equally good checkpoints the first stays, which is the best report's",
          "[tune][checkpoint]") {
  const tune::TemporaryFolder folder;
  const auto results = tune::run<is_constant>(one_trial(folder.path(), 1));
  const auto trials = results.folder() / "trials" / "0";
  CHECK(results.best().checkpoint() == (trials / "1").string());
  CHECK(names_in(trials) == std::set<std::string>{"1", "6"});
}

TEST_CASE("the checkpoint of the best report survives a resume and snapshots",
          "[tune][checkpoint][resume]") {
  const tune::TemporaryFolder folder;
  auto options = one_trial(folder.path(), 1);
  options.snapshot_after = GENERATE(std::size_t{0}, std::size_t{1});
  CAPTURE(options.snapshot_after);
  options.config.interrupted_at = 5;
  options.mode = tune::Min;  // the first report is the best
  const auto interrupted = tune::run<learns>(options);
  REQUIRE(interrupted.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  REQUIRE(interrupted.trials()[0].trial.t == 5);
  options.config.interrupted_at = 0;
  options.resume = true;
  const auto results = tune::run<learns>(options);
  const auto trials = results.folder() / "trials" / "0";
  CHECK(results.best().checkpoint() == (trials / "1").string());
  CHECK(names_in(trials) == std::set<std::string>{"1", "12"});
}

TEST_CASE("a checkpoint outside of the run's folder is never deleted", "[tune][checkpoint]") {
  const tune::TemporaryFolder folder, elsewhere;
  auto options = one_trial(folder.path(), 1);
  options.config.elsewhere = elsewhere.path().string();
  tune::run<up_and_down>(options);
  CHECK(names_in(elsewhere.path()).size() == 7);
}

TEST_CASE("a checkpoint that another trial is to go on from stays until it has",
          "[tune][checkpoint]") {
  const tune::TemporaryFolder folder;
  for (const auto& scheduler : {tune::asha({.max_t = 8, .eta = 2, .promote = true}),
                                tune::hyperband({.max_t = 8, .eta = 2})}) {
    auto options = one_trial(folder.path(), 1);
    options.space = {{"lr", tune::uniform(0, 1)}};
    options.trials = 12;
    options.scheduler = scheduler;
    const auto results = tune::run<learns>(options);
    for (const auto& trial : results.trials()) {
      CAPTURE(trial.trial.id, trial.trial.error);
      CHECK(trial.trial.status != tune::Status::Errored);
      CHECK(trial.trial.last.front().value ==
            Approx(trial.config.lr * static_cast<double>(trial.trial.t)));
      CHECK(
          names_in(fs::path(results.folder()) / "trials" / std::to_string(trial.trial.id)).size() <=
          2);
    }
    CHECK(results.best().trial.t == 8);
  }
}

TEST_CASE("a promoted trial whose checkpoint is gone goes on from the one before, else the next",
          "[tune][checkpoint][promotion]") {
  // With one that is kept beside the last, the best: of t=1 where the accuracy falls.
  const auto [keep, mode, before] = GENERATE(table<std::size_t, tune::Mode, std::string>(
      {{0, tune::Max, "goes on from the checkpoint before, of t=2"},
       {1, tune::Min, "goes on from the checkpoint before, of t=1"},
       {1, tune::Max, "goes on from the start"}}));
  CAPTURE(keep, before);
  const tune::TemporaryFolder folder;
  auto options = one_trial(folder.path(), keep);
  options.space = {{"lr", tune::uniform(0.1, 1)}};
  options.trials = 9;
  options.mode = mode;
  options.scheduler = tune::asha({.max_t = 9, .eta = 3, .grace = 3, .promote = true});
  const auto results = tune::run<takes_others_away>(options);
  CHECK_THAT(results.summary(), Catch::Contains("lost its checkpoint (the checkpoint ") &&
                                    Catch::Contains("is gone); it " + before));
  std::size_t trained = 0;
  for (const auto& [config, trial, text] : results.trials()) {
    CAPTURE(trial.id, trial.error);
    CHECK(trial.status != tune::Status::Errored);
    CHECK(trial.failures == 0);
    CHECK(trial.last.front().value == Approx(config.lr * static_cast<double>(trial.t)));
    std::vector<std::int64_t> each_once, reported;
    for (std::int64_t t = 1; t <= trial.t; ++t) each_once.push_back(t);
    for (const auto& [t, value] : trial.history) reported.push_back(t);
    CHECK(reported == each_once);
    if (trial.t == 9) ++trained;
  }
  CHECK(trained >= 1);
}

TEST_CASE("a run that was interrupted goes on from the checkpoints that it kept",
          "[tune][checkpoint][resume]") {
  const tune::TemporaryFolder folder;
  auto options = one_trial(folder.path(), 1);
  options.stop.trial_time = std::chrono::milliseconds(1'000'000);
  options.config.interrupted_at = 5;
  const auto interrupted = tune::run<learns>(options);
  REQUIRE(interrupted.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  REQUIRE(interrupted.trials()[0].trial.t == 5);
  options.config.interrupted_at = 0;
  options.resume = true;
  const auto results = tune::run<learns>(options);
  CHECK(results.trials()[0].trial.t == 12);
  CHECK_THAT(results.summary(), !Catch::Contains("lost its checkpoint"));
}

}  // namespace checkpoint_keeper_test
