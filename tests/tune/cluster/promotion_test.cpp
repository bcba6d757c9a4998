#include <troupe/tune.hpp>

#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/cluster.hpp>

#include "support/member.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

namespace promotion_test {

using namespace troupe;

namespace {

struct Config {
  double lr = 0.5;
};

void trains(tune::Context& ctx, const Config& config) {
  tune::MemberAttempt member(ctx);
  while (member.step(config.lr) != Verdict::Stop) continue;
}

/// A trial that begins deletes what the others wait with at the second rung.
void takes_others_away(tune::Context& ctx, const Config& config) {
  const std::filesystem::path own = ctx.storage();
  std::error_code none;
  if (ctx.restore_from().empty()) {
    for (const auto& other : std::filesystem::directory_iterator(own.parent_path(), none))
      if (other.path() != own) std::filesystem::remove_all(other.path() / "step-3");
  }
  trains(ctx, config);
}

/// Has nothing to go on from: trains from the start each time.
void forgets(tune::Context& ctx, const Config& config) {
  for (int step = 1; ctx.report({{"score", config.lr * step}, {"steps", step}}) != Verdict::Stop;)
    ++step;
}

template <auto fn>
tune::Results<Config> search(tune::Options<Config> options) {
  options.space = {{"lr", tune::uniform(0, 1)}};
  options.trials = 18;
  options.metric = "score";
  options.mode = tune::Max;
  options.scheduler = tune::asha({.max_t = 9, .eta = 3, .promote = true});
  options.show = tune::Show::None;
  return tune::run<fn>(std::move(options));
}

/// Every trial ended in order, and one at least was trained to the end.
void check_ends(const tune::Results<Config>& results) {
  std::map<std::int64_t, int> trained;
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ", error '" << trial.error << "', reason '" << trial.reason << "'");
    const bool is_finished = trial.t == 9;
    CHECK(trial.status == (is_finished ? tune::Status::Terminated : tune::Status::Stopped));
    CHECK(trial.failures == 0);
    if (!is_finished) CHECK_THAT(trial.reason, Catch::Contains("not promoted from rung"));
    ++trained[trial.t];
  }
  CHECK(trained.size() == 3);
  CHECK(trained[1] >= 8);
  CHECK(trained[3] >= 1);
  CHECK(trained[9] >= 1);
}

}  // namespace

TEST_CASE("a trial that is promoted goes on from the weights that it was paused with",
          "[tune][promotion][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = search<trains>({.each = {.workers = 2}, .storage = folder.path()});
  check_ends(results);

  std::map<tune::TrialId, std::vector<std::int64_t>> reported;
  std::map<tune::TrialId, std::map<std::int64_t, double>> written;
  std::size_t resumed = 0;
  for (const auto& report : tune::lines_of(results.folder() / "reports.jsonl")) {
    const auto trial = report.at("trial").get<tune::TrialId>();
    const auto t = report.at("t").get<std::int64_t>();
    reported[trial].push_back(t);
    // Its weights have been trained for t steps, and an attempt read what the one before had
    // written last, on both ranks.
    CHECK(tune::metric_of(report, "steps") == t);
    const auto read = tune::metric_of(report, "read");
    const bool goes_on = report.at("attempt").get<int>() > 1;
    if (goes_on) {
      ++resumed;
      CHECK(tune::metric_of(report, "others_read") == read);
      bool is_own = false;
      for (const auto& [step, digest] : written[trial]) is_own = is_own || digest == read;
      CHECK(is_own);
    }
    written[trial][t] = tune::metric_of(report, "written");
  }
  CHECK(resumed > 0);
  for (const auto& [config, trial, text] : results.trials()) {
    std::vector<std::int64_t> each_once;
    for (std::int64_t t = 1; t <= trial.t; ++t) each_once.push_back(t);
    CHECK(reported[trial.id] == each_once);
  }
}

TEST_CASE("a trial that is promoted and whose checkpoint is gone goes on from the one before",
          "[tune][promotion][checkpoint][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 1});  // none writes while another deletes
  const auto results = search<takes_others_away>({.storage = folder.path()});
  check_ends(results);
  CHECK_THAT(results.summary(),
             Catch::Contains("step-3 is gone: rank 0 does not find it); it goes on from the "
                             "checkpoint before, of t=2"));
  std::map<tune::TrialId, std::map<std::int64_t, double>> written;
  std::size_t from_before = 0;
  for (const auto& report : tune::lines_of(results.folder() / "reports.jsonl")) {
    const auto trial = report.at("trial").get<tune::TrialId>();
    const auto t = report.at("t").get<std::int64_t>();
    CHECK(tune::metric_of(report, "steps") == t);
    CHECK(written[trial].size() + 1 == static_cast<std::size_t>(t));  // each once, in order
    if (t == 4 && tune::metric_of(report, "read") == written[trial][2]) ++from_before;
    written[trial][t] = tune::metric_of(report, "written");
  }
  CHECK(from_before > 0);
}

TEST_CASE("a promoted trial without a checkpoint trains from the start, and a note says so",
          "[tune][promotion][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = search<forgets>({});
  check_ends(results);
  CHECK_THAT(results.summary(), Catch::Contains("without a checkpoint of that report"));
}

}  // namespace promotion_test
