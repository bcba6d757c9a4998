#include <troupe/tune.hpp>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/cluster.hpp>

#include "support/member.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Contains;
using Catch::StartsWith;

namespace {

/// What befalls the first member that takes over another, once.
struct Mishap {
  double lr = 0.5;
  std::int64_t steps = 8;
  int members = 2;
  std::string what = {};
  int at_rank = 0;
  std::string folder = {};

  bool happens_now() const { return mkdir((folder + "/happened").c_str(), 0755) == 0; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(lr, steps, members, what, at_rank, folder);
    const bool is_due = Archive::is_loading::value &&
                        what == "killed as it is told its configuration" &&
                        std::filesystem::exists(folder + "/stopped");
    if (is_due && happens_now()) std::raise(SIGKILL);
  }
};

std::string process_file(const std::string& folder, tune::TrialId trial) {
  return folder + "/process-" + std::to_string(trial);
}

/// Kills rank 0 of the trial that wrote the checkpoint.
void kill_writer(const std::string& folder, const std::string& checkpoint) {
  constexpr std::string_view trials = "/trials/";
  const auto trial = std::stoull(checkpoint.substr(checkpoint.find(trials) + trials.size()));
  pid_t process = 0;
  std::ifstream(process_file(folder, trial)) >> process;
  if (process <= 0 || kill(process, SIGKILL) != 0)
    throw std::runtime_error("the donor's process is not there");
}

void meets_a_mishap(tune::Context& ctx, const Mishap& config) {
  const auto happens = [&](const std::string& what) {
    return config.what == what && ctx.rank() == config.at_rank && config.happens_now();
  };
  const bool goes_on = !ctx.restore_from().empty();
  // Rank 0 waits for the others below.
  if (goes_on && happens("killed before its first report")) std::raise(SIGKILL);
  if (goes_on && happens("its donor is killed")) kill_writer(config.folder, ctx.restore_from());
  tune::MemberAttempt member(ctx, {config.members, config.folder});
  if (ctx.rank() == 0) std::ofstream(process_file(config.folder, member.trial())) << getpid();
  while (member.steps() < config.steps) {
    if (member.step(config.lr) == Verdict::Continue) continue;
    tune::make_file(config.folder + "/stopped");
    const auto once = config.folder + "/rank-" + std::to_string(ctx.rank());
    if (config.what == "one throws, one stays after Stop" && mkdir(once.c_str(), 0755) == 0) {
      if (ctx.rank() == config.at_rank) throw std::runtime_error("it was on its way out");
      for (;;) pause();
    }
    if (happens("killed after Stop")) std::raise(SIGKILL);
    if (happens("throws after Stop")) throw std::runtime_error("it was on its way out");
    if (happens("reports after Stop")) member.step(config.lr);
    while (happens("blocks after Stop")) pause();
    return;
  }
}

auto population(const tune::TemporaryFolder& folder, std::string what, int at_rank,
                std::chrono::milliseconds grace = 10s) {
  return tune::run<meets_a_mishap>(
      {.space = {{"lr", tune::grid({0.1, 0.9})}},
       .metric = "score",
       .mode = tune::Max,
       .scheduler = tune::pbt({.interval = 2, .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .each = {.workers = 2},
       .storage = folder.path(),
       .config = {.what = std::move(what), .at_rank = at_rank, .folder = folder.path().string()},
       .max_failures = 1,
       .stop_grace = grace,
       .show = tune::Show::None});
}

/// Checks that both members came to the end, and that whoever took over another read what that one
/// had written.
void check_both_ended(const tune::Results<Mishap>& results) {
  REQUIRE(results.trials().size() == 2);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ", error '" << trial.error << "', reason '" << trial.reason << "'");
    CHECK(trial.status == tune::Status::Terminated);
    CHECK(trial.t == 8);
  }
  tune::check_lineage(results);
  CHECK(tune::check_what_was_restored(results.folder(), 2).of_others > 0);
}

/// Checks that besides the second attempt after the first takeover began as the first one.
void check_went_on_from_the_donor(const tune::Results<Mishap>& results, bool in_another_gang) {
  check_both_ended(results);
  std::vector<tune::Json> launches;  // of the member that did worse from the beginning
  for (const auto& launched : tune::events_of(results.folder(), "launched")) {
    if (launched.at("trial") == 0) launches.push_back(launched);
  }
  REQUIRE(launches.size() >= 2);
  const auto checkpoint = launches[1].at("checkpoint").get<std::string>();
  CHECK_THAT(checkpoint, StartsWith("./trials/1/"));
  if (in_another_gang) {
    REQUIRE(launches.size() >= 3);
    for (const char* same : {"checkpoint", "config", "after_t"})
      CHECK(launches[1].at(same) == launches[2].at(same));
  }
  std::set<double> processes;
  for (const auto& report : tune::lines_of(results.folder() / "reports.jsonl")) {
    if (report.at("trial") == 0) processes.insert(tune::metric_of(report, "pid"));
  }
  CHECK(processes.size() == (in_another_gang ? 2 : 1));
}

}  // namespace

TEST_CASE(
    "a member that is killed after it was told to take over another is tried again from the "
    "donor's checkpoint",
    "[tune][pbt][cluster][failure]") {
  const int rank = GENERATE(0, 1);
  CAPTURE(rank);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = population(folder, "killed after Stop", rank);
  check_went_on_from_the_donor(results, true);
  const auto& trial = results.trials()[0].trial;
  CHECK(trial.failures == 0);  // of an attempt that is given up
  CHECK(trial.restarts == 1);
  CHECK_THAT(trial.restart_reason, Contains("signal 9"));
}

TEST_CASE(
    "a rank that throws after Stop beside one that never returns holds a takeover up for the grace "
    "only",
    "[tune][pbt][cluster][failure]") {
  const int rank = GENERATE(0, 1);
  CAPTURE(rank);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = population(folder, "one throws, one stays after Stop", rank, 1s);
  check_went_on_from_the_donor(results, true);
  CHECK(results.trials()[0].trial.failures == 0);
  CHECK(results.trials()[0].trial.restarts == 1);
  CHECK(results.duration() >= 1s);
}

TEST_CASE(
    "a donor that is killed before its checkpoint was read is taken over all the same, and is "
    "tried again",
    "[tune][pbt][cluster][failure]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = population(folder, "its donor is killed", 0);
  REQUIRE(std::filesystem::exists(folder.path() / "happened"));
  check_both_ended(results);
  CHECK(results.trials()[0].trial.failures == 0);
  const auto& donor = results.trials()[1].trial;
  CHECK(donor.failures == 1);
  CHECK_THAT(donor.error, Contains("signal 9"));
}

TEST_CASE(
    "a member that is killed as it is told its new configuration is started again, and that is no "
    "failure",
    "[tune][pbt][cluster][failure]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = population(folder, "killed as it is told its configuration", 0);
  REQUIRE(std::filesystem::exists(folder.path() / "happened"));
  check_went_on_from_the_donor(results, true);
  const auto& trial = results.trials()[0].trial;
  CHECK(trial.failures == 0);
  CHECK(trial.restarts == 1);
  CHECK_THAT(trial.restart_reason, Contains("signal 9"));
}

TEST_CASE(
    "a member that is killed before its first report with the donor's weights goes on from them "
    "all the same",
    "[tune][pbt][cluster][failure]") {
  const int rank = GENERATE(0, 1);
  CAPTURE(rank);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = population(folder, "killed before its first report", rank);
  check_went_on_from_the_donor(results, true);
  const auto& trial = results.trials()[0].trial;
  // The search may see it die before it sees that it has begun.
  CHECK(trial.failures + trial.restarts == 1);
}

TEST_CASE(
    "a member that does not end for its takeover is ended after the grace, and goes on from the "
    "donor's checkpoint",
    "[tune][pbt][cluster][failure]") {
  const int rank = GENERATE(0, 1);
  CAPTURE(rank);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = population(folder, "blocks after Stop", rank, 1s);
  check_went_on_from_the_donor(results, true);
  const auto& trial = results.trials()[0].trial;
  CHECK(trial.failures == 0);
  CHECK(trial.restarts == 1);
  CHECK_THAT(trial.restart_reason,
             Contains("its attempt that was to end had not, 1.0 s after it was told to"));
}

TEST_CASE(
    "a function that throws or reports after Stop has ended, and takes over in the same processes",
    "[tune][pbt][cluster][failure]") {
  const std::string what = GENERATE("throws after Stop", "reports after Stop");
  const int rank = GENERATE(0, 1);
  CAPTURE(what, rank);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = population(folder, what, rank);
  REQUIRE(std::filesystem::exists(folder.path() / "happened"));
  check_went_on_from_the_donor(results, false);
  CHECK(results.trials()[0].trial.failures == 0);
  CHECK(results.trials()[0].trial.restarts == 0);
}
