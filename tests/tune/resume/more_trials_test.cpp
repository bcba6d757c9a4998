// Runs that are gone on with for more trials than they were begun with.
#include <fstream>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/temporary_folder.hpp"

namespace more_trials_test {

namespace tune = troupe::tune;
using namespace troupe::tune;
using Catch::Contains;

namespace {

struct Config {
  double lr = 0.5;
  int width = 4;
};

void trains(Context& ctx, const Config& config) {
  for (int step = 1;; ++step) {
    const double loss = config.lr * config.lr + 1.0 / (step * config.width);
    if (ctx.report({{"loss", loss}}) == troupe::Verdict::Stop || step == 9) return;
  }
}

Options<Config> options(const TemporaryFolder& folder, std::uint64_t trials) {
  return {.space = {{"lr", uniform(-1, 1)}, {"width", integer(1, 32)}},
          .trials = trials,
          .metric = "loss",
          .scheduler = asha({.max_t = 9, .eta = 3}),
          .storage = folder.path(),
          .resume = true,
          .seed = 5,
          .show = Show::None,
          .in_process = true};
}

void set_search(Options<Config>& options, const std::string& name) {
  if (name == "tpe") options.searcher = tpe({.startup_trials = 3});
  if (name == "sobol") options.searcher = sobol();
  if (name == "nsga2") options.searcher = nsga2({.population = 4});
  if (name == "repeated") options.searcher = repeated(cmaes({.population = 4}), 2);
  if (name == "process") options.searcher = gaussian_process({.startup = 3});
  if (name == "bohb") options.searcher = bohb_model();
  if (name == "grid") options.space = {{"lr", uniform(-1, 1)}, {"width", grid({1, 2, 3, 4, 5})}};
  if (name == "grid" || name == "tpe") options.first = {{.lr = 0.25, .width = 3}};
  if (name == "tpe") options.known = {{{.lr = -0.5, .width = 8}, 0.4}};
  if (name == "nsga2") options.scheduler = median_stopping({.grace = 2});
  if (name == "sobol") options.scheduler = fifo();
}

std::vector<std::string> decisions_of(const Results<Config>& results) {
  std::vector<std::string> decisions;
  for (const auto& [config, trial, text] : results.trials())
    decisions.push_back(text + ", " + trial.reason + ", " + to_string(trial.config));
  return decisions;
}

std::size_t runs_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

/// As if the driver had been killed in the middle of the run.
void cut_short(const std::filesystem::path& run) {
  const auto journal = run / "journal.jsonl";
  const auto text = content_of(journal);
  std::filesystem::remove(run / "summary.json");
  std::filesystem::resize_file(journal, text.find('\n', text.size() / 2) + 1);
}

}  // namespace

TEST_CASE("a run that is given more trials decides as one that had them from its beginning",
          "[tune][resume]") {
  const std::string search =
      GENERATE("random", "tpe", "sobol", "nsga2", "repeated", "process", "bohb", "grid");
  const std::size_t snapshot_after = GENERATE(0, 1);
  const bool is_finished = GENERATE(true, false);
  CAPTURE(search, snapshot_after, is_finished);
  const TemporaryFolder whole, folder;
  const auto with = [&](const TemporaryFolder& storage, std::uint64_t trials) {
    auto wanted = options(storage, trials);
    set_search(wanted, search);
    wanted.snapshot_after = snapshot_after;
    return wanted;
  };
  const auto expected = decisions_of(tune::run<trains>(with(whole, 14)));
  const auto first = tune::run<trains>(with(folder, 8));
  REQUIRE(first.trials().size() == 8);
  if (!is_finished && snapshot_after == 0) cut_short(first.folder());

  const auto more = tune::run<trains>(with(folder, 14));
  CHECK(more.folder() == first.folder());
  CHECK(decisions_of(more) == expected);
  CHECK_THAT(more.summary(), Contains("the run was to have 8 trials, and may have 14 now"));
  CHECK_THAT(content_of(first.folder() / "params.json"), Contains("\"trials\": 14"));
  CHECK(runs_in(folder) == 1);

  // It is one of 14 from now on.
  if (snapshot_after == 0) cut_short(more.folder());
  const auto again = tune::resume<trains>(more.folder(), with(folder, 14));
  CHECK(decisions_of(again) == expected);
  CHECK_THROWS_WITH(tune::resume<trains>(more.folder(), with(folder, 8)),
                    Contains("is 14 there, 8 here"));
}

namespace {

bool has_summary = false, has_journal = false;  // while trials run
void looks_for_summary(Context& ctx, const Config& config) {
  const auto run = ctx.storage().parent_path().parent_path();
  has_summary = has_summary || std::filesystem::exists(run / "summary.json");
  has_journal = has_journal || std::filesystem::exists(run / "journal.jsonl");
  ctx.report({{"loss", config.lr}});
}

}  // namespace

TEST_CASE("a run that has got more trials is not over until they are", "[tune][resume]") {
  const TemporaryFolder folder;
  const auto first = tune::run<looks_for_summary>(options(folder, 3));
  CHECK(std::filesystem::exists(first.folder() / "summary.json"));
  has_summary = false;
  const auto more = tune::run<looks_for_summary>(options(folder, 5));
  CHECK(more.folder() == first.folder());
  CHECK_FALSE(has_summary);
  CHECK(has_journal);
  CHECK(std::filesystem::exists(first.folder() / "summary.json"));
}

TEST_CASE("a run whose scheduler goes by the number of trials takes no more", "[tune][resume]") {
  const TemporaryFolder folder;
  auto wanted = options(folder, 8);
  wanted.scheduler =
      GENERATE(hyperband({.max_t = 9, .eta = 3}), asha({.max_t = 9, .eta = 3, .promote = true}));
  const auto first = tune::run<trains>(wanted);
  wanted.trials = 12;
  CHECK_THROWS_WITH(
      tune::resume<trains>(first.folder(), wanted),
      Contains(
          "begun with .trials = 8, here they are 12, and its .scheduler decides by how many") &&
          Contains("begin a new run without .resume") && Contains(".known = tune::load<Config>("));
  const auto anew = tune::run<trains>(wanted);  // as the first one is over
  CHECK(anew.trials().size() == 12);
  CHECK(anew.folder().filename() == "run-2");
  CHECK_THAT(anew.summary(),
             Contains("learns what the earlier one found from .known = tune::load<Config>("));
}

TEST_CASE("a new run says that the one before it is over", "[tune][resume]") {
  const TemporaryFolder folder;
  const auto first = tune::run<trains>(options(folder, 4));
  CHECK_THAT(first.summary(), !Contains("come to its end"));
  const auto second = tune::run<trains>(options(folder, 4));
  CHECK(second.folder().filename() == "run-2");
  CHECK_THAT(second.summary(), Contains(first.folder().string() + " has come to its end") &&
                                   Contains("this is a new run, in run-2") &&
                                   Contains("more .trials") && Contains("tune::resume"));
}

TEST_CASE("a run that is over and is resumed by its folder gives its results, and says so",
          "[tune][resume]") {
  const TemporaryFolder folder;
  const auto first = tune::run<trains>(options(folder, 4));
  const auto again = tune::resume<trains>(first.folder(), options(folder, 4));
  CHECK(decisions_of(again) == decisions_of(first));
  CHECK(again.ended_early().empty());
  CHECK_THAT(again.summary(), Contains(first.folder().string() + " had come to its end: nothing is "
                                                                 "left to run") &&
                                  !Contains("goes on with"));
  CHECK(runs_in(folder) == 1);
}

TEST_CASE("a run that goes on removes the markers of drivers that were killed", "[tune][resume]") {
  const TemporaryFolder folder;
  const auto first = tune::run<trains>(options(folder, 4));
  std::ofstream(first.folder() / ".seen-0123456789abcdef") << "left";
  const auto more = tune::run<trains>(options(folder, 5));
  CHECK(more.folder() == first.folder());
  for (const auto& entry : std::filesystem::directory_iterator(more.folder()))
    CHECK_FALSE(entry.path().filename().string().starts_with(".seen-"));
}

TEST_CASE("a run that ended as it was asked to is over with more trials too", "[tune][resume]") {
  const TemporaryFolder folder;
  auto wanted = options(folder, 20);
  wanted.stop.all_reports = 12;
  const auto first = tune::run<trains>(wanted);
  wanted.trials = 30;
  const auto again = tune::resume<trains>(first.folder(), wanted);
  CHECK(again.ended_early() == first.ended_early());
  CHECK_THAT(first.summary(),
             Contains("; " + std::to_string(20 - first.trials().size()) + " not begun\n"));
  CHECK(again.trials().size() == first.trials().size());
  CHECK(tune::run<trains>(wanted).folder().filename() == "run-2");
}

}  // namespace more_trials_test
