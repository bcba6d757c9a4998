// How far the function of a trainable is, as its driver gets to know.
#include <troupe/detail/trainable/trial_run.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include <catch2/catch.hpp>

#include "fake_gang.hpp"

namespace trainable_progress_test {

using namespace troupe;
using namespace troupe::detail;
using Kind = TrialEvent::Kind;

struct Context {
  explicit Context(Member& m) : member(m) {}
  Member& member;
};
struct Config {
  int steps = 0;
};

/// Tells of a thousand steps before each report. -> whether nobody asked for that.
int tells(Context& context, const Config& config) {
  for (int step = 0; step < config.steps * 1000; ++step) {
    context.member.progress({.done = step + 1, .unit = "games"});
    if (step % 1000 == 999) context.member.report({}, "");
  }
  context.member.progress({.done = -1, .unit = "games"});
  return context.member.shows_progress() ? 0 : 1;
}

std::atomic<bool> may_end = false;
void waits(Context&, const Config&) { may_end.wait(false); }

template <auto F>
TrialRun<F> start(int size, Config config, RunInfo info = {}) {
  return TrialRun<F>(gang<TrainableWorker<F>>({.size = size}, config, std::move(info)));
}

TEST_CASE("how far a function is reaches the driver between its reports and with them",
          "[api][trainable][progress]") {
  auto run = start<tells>(2, {.steps = 2}, {.progress_every = std::chrono::milliseconds(1)});
  std::int64_t seen = -1;
  int reports = 0;
  auto event = run.wait();
  for (; event.kind != Kind::Finished; event = run.wait()) {
    if (event.progress) {
      CHECK(event.progress->done >= seen);
      CHECK(event.progress->unit == "games");
      seen = event.progress->done;
    }
    if (event.kind != Kind::Report) {
      CHECK(event.progress.has_value());
      continue;
    }
    CHECK(event.index == static_cast<std::uint64_t>(reports));
    CHECK(seen == ++reports * 1000);
    run.answer(Verdict::Continue);
  }
  CHECK(reports == 2);
  REQUIRE(event.progress.has_value());
  CHECK(event.progress->done == -1);  // what was told last
  CHECK(run.result() == 0);           // rank 0 alone is asked
}

TEST_CASE("a driver that does not want to know how far a function is gets its reports alone",
          "[api][trainable][progress]") {
  auto run = start<tells>(1, {.steps = 1});
  const auto event = run.wait();
  CHECK(event.kind == Kind::Report);
  CHECK_FALSE(event.progress.has_value());
  run.answer(Verdict::Continue);
  const auto end = run.wait();
  CHECK(end.kind == Kind::Finished);
  CHECK_FALSE(end.progress.has_value());
  CHECK(run.result() == 1);  // not asked
}

TEST_CASE("a function does not wait for a driver that does not look how far it is",
          "[api][trainable][progress]") {
  fake::GangOfThreads context(std::make_shared<fake::GangTable>(), 0, 1);
  TrialSession session(context, {.progress_every = std::chrono::milliseconds(1)});
  session.start("body", [](Member& member) {
    for (int done = 1; done <= 100'000; ++done) member.progress({.done = done});
  });
  session.finish();  // nobody has called next()
  const auto end = session.next(std::nullopt);
  CHECK(end.kind == Kind::Finished);
  REQUIRE(end.progress.has_value());
  CHECK(end.progress->done == 100'000);
}

TEST_CASE("a driver looks how far a function is while it works, and waits no longer than it likes",
          "[api][trainable][progress]") {
  fake::GangOfThreads context(std::make_shared<fake::GangTable>(), 0, 1);
  TrialSession session(context, {.progress_every = std::chrono::milliseconds(1)});
  std::atomic<bool> ends = false;
  session.start("body", [&](Member& member) {
    member.progress({.done = 7});
    ends.wait(false);
  });
  const auto event = session.next(std::nullopt);
  CHECK(event.kind == Kind::Progress);
  CHECK(event.progress.value().done == 7);
  ends = true;
  ends.notify_all();
  CHECK(session.next(std::nullopt).kind == Kind::Finished);

  auto slow = start<waits>(1, {});
  CHECK_FALSE(slow.wait_until(std::chrono::steady_clock::now()).has_value());
  may_end = true;
  may_end.notify_all();
  CHECK(slow.wait().kind == Kind::Finished);
  slow.result();
}

}  // namespace trainable_progress_test
