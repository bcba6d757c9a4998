// Runs of a trainable in real processes.
#include <troupe/detail/trainable/trial_run.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>
#include <catch2/catch.hpp>
#include <troupe/troupe.hpp>
#include "guard.hpp"

using namespace troupe;
using namespace troupe::detail;
using namespace std::chrono_literals;
using Kind = TrialEvent::Kind;
using troupe::test::kGuard;

namespace {

struct Context {
  explicit Context(Member& m) : member(m) {}
  Member& member;
};
struct Config {
  int value = 0;
};

/// Rank 0 sets its value, rank 1 answers with what it read and with its process; both by keys that
/// every run has. Reports that until it is stopped. -> rank 0's value
int hand_over(Context& context, const Config& config) {
  auto& gang = context.member.gang();
  auto& rendezvous = gang.rendezvous();
  if (gang.rank() == 0) rendezvous.set("value", std::to_string(config.value));
  if (gang.rank() == 1) {
    rendezvous.set("read", rendezvous.get("value", kGuard));
    rendezvous.set("process", std::to_string(getpid()));
  }
  const Metrics seen{{"value", config.value},
                     {"read", std::stod(rendezvous.get("read", kGuard))},
                     {"rank 0", getpid()},
                     {"rank 1", std::stod(rendezvous.get("process", kGuard))},
                     {"seed", context.member.seed()}};
  while (context.member.report(seen, context.member.restore_from()) == Verdict::Continue) continue;
  return config.value;
}

using Worker = TrainableWorker<hand_over>;

/// Passes on what it was told of an actor that is none of this gang.
void pass_on(Context&, const Config& config) {
  raise({.kind = static_cast<Failure::Kind>(config.value), .message = "told", .exit_code = -1});
}

struct Run {
  std::vector<TrialEvent> reports;
  int result = 0;
  double of(const std::string& name) const {
    for (const auto& metric : reports.back().metrics) {
      if (metric.name == name) return metric.value;
    }
    throw std::out_of_range(name);
  }
};

/// A run that is stopped at its report number `last`, from 0.
Run run_until(const Gang<Worker>& ranks, std::uint64_t last) {
  Run seen;
  TrialRun<hand_over> run(ranks);
  auto event = run.wait();
  for (; event.kind == Kind::Report; event = run.wait()) {
    CHECK(event.index == seen.reports.size());
    seen.reports.push_back(event);
    run.answer(event.index == last ? Verdict::Stop : Verdict::Continue);
  }
  CHECK(event.stopped);
  CHECK(event.returned);
  CHECK(run.begun());
  seen.result = run.result();
  return seen;
}

}  // namespace

TEST_CASE("runs follow one another in the processes of one gang, and none meets a key of another",
          "[runtime][session][trainable]") {
  auto cluster = init({.cpus = 2});
  const auto ranks = gang<Worker>({.size = 2}, Config{.value = 5}, RunInfo{.seed = 3});
  const auto first = run_until(ranks, 1);
  REQUIRE(first.reports.size() == 2);
  CHECK(first.result == 5);
  CHECK(first.of("read") == 5);
  CHECK(first.of("seed") == 3);

  // Also beyond the report at which the first run was stopped.
  for (const std::uint64_t last : {3, 0}) {
    const int value = 6 + static_cast<int>(last);
    const RunInfo info{.restore_from = "there " + std::to_string(last), .seed = 10 + last};
    for (const auto& renewed : ranks.all<&Worker::renew>(Config{.value = value}, info))
      renewed.get(kGuard);
    const auto next = run_until(ranks, last);
    REQUIRE(next.reports.size() == last + 1);
    CHECK(next.result == value);
    CHECK(next.of("value") == value);
    CHECK(next.of("read") == value);
    CHECK(next.of("seed") == 10 + static_cast<double>(last));
    CHECK(next.reports.back().checkpoint == info.restore_from);
    CHECK(next.of("rank 0") == first.of("rank 0"));
    CHECK(next.of("rank 1") == first.of("rank 1"));
  }
  CHECK(first.of("rank 0") != first.of("rank 1"));
}

TEST_CASE("a rank of a trainable's gang says where it is", "[runtime][session][trainable]") {
  auto cluster = init({.cpus = 2});
  const auto ranks = gang<Worker>({.size = 2}, Config{}, RunInfo{});
  int local_rank = 0;
  for (const auto& ref : ranks.all<&Worker::look>("", "/proc")) {
    const auto seen = ref.get(kGuard);
    CHECK(seen.node == 1);
    CHECK(seen.local_rank == local_rank++);
    CHECK_FALSE(seen.sees_marker);
    CHECK(seen.sees_checkpoint);
  }
  CHECK(ranks.rank(1).call<&Worker::node>().get(kGuard) == 1);
}

TEST_CASE("what a trainable passes on of others is its own failure",
          "[runtime][session][trainable]") {
  using What = Failure::Kind;
  auto cluster = init({.cpus = 2});
  for (const auto kind : {What::GangBroken, What::StoreFull, What::Cancelled, What::Impossible}) {
    const auto ranks =
        gang<TrainableWorker<pass_on>>({.size = 2}, Config{static_cast<int>(kind)}, RunInfo{});
    TrialRun<pass_on> run(ranks);
    try {
      run.wait();
      FAIL("it did not throw");
    } catch (const TaskError& error) {
      CHECK_THAT(error.type(), Catch::StartsWith("troupe::"));
      CHECK_THAT(error.what(), Catch::Contains("told") && Catch::Contains("pass_on, rank "));
    }
    ranks.kill();
  }
}
