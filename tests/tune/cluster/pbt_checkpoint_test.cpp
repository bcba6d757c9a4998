#include <troupe/tune.hpp>

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/cluster.hpp>

#include "support/member.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe;
using Catch::Contains;

namespace {

struct ForgetfulConfig {
  double lr = 0.5;
  std::int64_t steps = 6;
  int members = 2;
  std::string folder = {};
};

/// Takes the checkpoint away that this trial was told last to go on from: all of it at once.
void take_away_donors_checkpoint(const std::filesystem::path& run, tune::TrialId trial) {
  std::string checkpoint;
  for (const auto& report : tune::events_of(run, "reported")) {
    if (report.at("trial") == trial && report.at("decision") == "exploit") {
      checkpoint = report.at("exploit").at("checkpoint").get<std::string>();
    }
  }
  std::filesystem::rename(run / checkpoint, run / "taken-away");
}

/// Members are judged first in the order of trials 1, 2, ..., 0, and before trial 0 was none told
/// to take over another: the worst, trial 0, takes its donor's checkpoint away before it ends. The
/// others train on once trial 0 does.
void takes_its_donors_checkpoint_away(tune::Context& ctx, const ForgetfulConfig& config) {
  tune::MemberAttempt member(ctx);
  const auto judged = [&](tune::TrialId trial) {
    return config.folder + "/judged-" + std::to_string(trial);
  };
  const auto went_on = config.folder + "/went-on";
  const auto trial = member.trial();
  if (trial == 0 && member.goes_on()) tune::make_file(went_on);
  // One that starts anew would write what was taken away once more.
  if (trial != 0 && std::filesystem::exists(judged(trial))) tune::wait_for_file(went_on);
  while (member.steps() < config.steps) {
    const auto before = trial == 0 ? static_cast<tune::TrialId>(config.members) - 1 : trial - 1;
    if (member.steps() == 1 && before != 0) tune::wait_for_file(judged(before));
    if (member.steps() >= 2 && trial != 0) tune::wait_for_file(went_on);
    const auto verdict = member.step(config.lr);
    if (member.steps() == 2) tune::make_file(judged(trial));
    if (verdict == Verdict::Continue) continue;
    if (trial == 0 && !std::filesystem::exists(went_on))
      take_away_donors_checkpoint(config.folder + "/run-1", trial);
    return;
  }
}

/// While one lives, what is written to the standard error stream goes into a file.
class StandardError {
 public:
  explicit StandardError(std::filesystem::path file)
      : file_{std::move(file)}, before_{dup(STDERR_FILENO)} {
    const int instead = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    REQUIRE(instead >= 0);
    dup2(instead, STDERR_FILENO);
    close(instead);
  }
  ~StandardError() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  std::string text() const { return tune::content_of(file_); }

 private:
  const std::filesystem::path file_;
  const int before_;
};

auto forgetful_population(const tune::TemporaryFolder& folder, std::vector<tune::Scalar> lr,
                          bool synchronous) {
  const auto members = static_cast<int>(lr.size());
  return tune::run<takes_its_donors_checkpoint_away>(
      {.space = {{"lr", tune::grid(std::move(lr))}},
       .metric = "score",
       .mode = tune::Max,
       .scheduler = tune::pbt({.interval = 2,
                               .quantile = 0.5,
                               .synchronous = synchronous,
                               .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .storage = folder.path(),
       .config = {.members = members, .folder = folder.path().string()},
       .max_failures = 2,  // a checkpoint may go while its own trial begins to read it
       .show = tune::Show::Lines});
}

void check_all_ended(const tune::Results<ForgetfulConfig>& results) {
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ", error '" << trial.error << "', reason '" << trial.reason << "'");
    CHECK(trial.status == tune::Status::Terminated);
    CHECK(trial.t == 6);
    CHECK(trial.restarts == 0);
  }
  CHECK(results.trials()[0].trial.failures == 0);
  tune::check_lineage(results);
  tune::check_what_was_restored(results.folder(), 1);
}

/// The first lines of pbt.jsonl about trial 0.
std::vector<tune::Json> lineage_of_trial_0(const std::filesystem::path& run) {
  auto lines = tune::lines_of(run / "pbt.jsonl");
  std::erase_if(lines, [](const auto& line) { return line.at("to") != 0; });
  return lines;
}

/// The path of the checkpoint that trial 0 was told first to take over.
std::string first_donors_checkpoint(const std::filesystem::path& run) {
  return tune::detail::CheckpointNames(run).path_of(lineage_of_trial_0(run).at(0).at("checkpoint"));
}

}  // namespace

TEST_CASE("where the donor's checkpoint is gone, a member takes over the next best",
          "[tune][pbt][cluster][failure]") {
  const bool synchronous = GENERATE(false, true);
  CAPTURE(synchronous);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const StandardError shown(folder.path() / "shown");
  const auto results = forgetful_population(folder, {0.1, 0.2, 0.3, 0.4}, synchronous);
  INFO(shown.text());
  check_all_ended(results);
  const auto lineage = lineage_of_trial_0(results.folder());
  REQUIRE(lineage.size() >= 2);
  const auto donor = lineage[0].at("from").get<tune::TrialId>();
  const auto next = lineage[1].at("from").get<tune::TrialId>();
  CHECK(std::set{donor, next} == std::set<tune::TrialId>{2, 3});
  CHECK(lineage[0].at("takeover") == 1);
  CHECK(lineage[1].at("takeover") == 1);  // instead of the one before
  const auto& first = results.trials()[0].trial.takeovers.at(0);
  CHECK(first.donor == next);
  CHECK(first.checkpoint_t == 2);
  CHECK(tune::to_json(first.before).at("lr") == 0.1);
  const auto gone = first_donors_checkpoint(results.folder());
  CHECK_THAT(shown.text(),
             Contains("trial 0 takes over trial " + std::to_string(donor) + " at t=2: lr "));
  CHECK_THAT(shown.text(),
             Contains("trial 0 lost its checkpoint (the checkpoint " + gone +
                      " is gone: rank 0 does not find it); trial 0 takes over trial " +
                      std::to_string(next) + " at t=2: lr "));
}

TEST_CASE(
    "where the donor's checkpoint is gone and nobody else is better, a member goes on from its own",
    "[tune][pbt][cluster][failure]") {
  const bool synchronous = GENERATE(false, true);
  CAPTURE(synchronous);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 2});
  const StandardError shown(folder.path() / "shown");
  const auto results = forgetful_population(folder, {0.1, 0.4}, synchronous);
  INFO(shown.text());
  check_all_ended(results);
  const auto lineage = lineage_of_trial_0(results.folder());
  REQUIRE(lineage.size() >= 2);
  const auto gone = first_donors_checkpoint(results.folder());
  const auto why = "the checkpoint " + gone + " is gone: rank 0 does not find it";
  CHECK(lineage[0].at("from") == 1);
  CHECK(lineage[1].at("takeover") == 1);
  CHECK(lineage[1].at("undone") == why);
  CHECK_THAT(shown.text(),
             Contains("trial 0 lost its checkpoint (" + why + "); it goes on from its own t=2"));
  const std::string own = "./trials/0/step-2";
  const auto launches = tune::events_of(results.folder(), "launched");
  const auto from_own = std::ranges::count_if(launches, [&](const auto& launched) {
    return launched.at("trial") == 0 && launched.value("checkpoint", "") == own &&
           launched.at("config").at("lr") == 0.1;
  });
  CHECK(from_own == 1);
}
