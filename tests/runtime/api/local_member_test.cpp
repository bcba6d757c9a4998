#include <troupe/detail/trainable/trainable_worker.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include "guard.hpp"

using namespace troupe;
using namespace troupe::detail;
using namespace std::chrono_literals;
using troupe::test::kGuard;

namespace {

struct LocalContext {
  explicit LocalContext(Member& m) : member(m) {}
  Member& member;
};

int count(LocalContext& context, const int& most) {
  const double first = context.member.seed() + context.member.gang().node();
  for (int i = 0; i < most; ++i)
    context.member.report({{"i", first + i}}, context.member.restore_from());
  return context.member.gang().size() * most;
}
void tell(LocalContext& context, const int& most) {
  for (int i = 1; i <= most; ++i) context.member.progress({.done = i});
  std::thread([&] { context.member.progress({.done = 1000}); }).join();
  context.member.report({}, "");
  context.member.progress({.done = 2000});
}
void fail(LocalContext&, const int&) { throw std::range_error("no"); }

}  // namespace

TEST_CASE("a trainable runs in this process without a cluster, as a gang of one", "[api][local]") {
  std::vector<double> seen;
  const auto result =
      run_locally<count>(3, {.restore_from = "there", .seed = 4}, [&](const TrialEvent& event) {
        CHECK(event.checkpoint == "there");
        seen.push_back(event.metrics.at(0).value);
        return Verdict::Continue;
      });
  CHECK(seen == std::vector<double>{4, 5, 6});
  CHECK(result.value == 3);
  CHECK(result.finished.returned);
  CHECK(result.finished.index == 3);
}

TEST_CASE("a local trainable that ignores Stop ends at its next report", "[api][local]") {
  const auto result = run_locally<count>(10, {}, [](const TrialEvent& event) {
    return event.index == 1 ? Verdict::Stop : Verdict::Continue;
  });
  CHECK_FALSE(result.value.has_value());
  CHECK(result.finished.stopped);
  CHECK(result.finished.index == 2);
}

TEST_CASE("how far a local trainable is goes to its judge, from its own thread now and then",
          "[api][local][progress]") {
  std::vector<std::pair<TrialEvent::Kind, std::int64_t>> seen;
  const auto thread = std::this_thread::get_id();
  const auto judge = [&](const TrialEvent& event) {
    CHECK(std::this_thread::get_id() == thread);
    seen.emplace_back(event.kind, event.progress.value().done);
    return Verdict::Continue;
  };
  const auto result = run_locally<tell>(5, {.progress_every = 1h}, judge);
  using Kind = TrialEvent::Kind;
  CHECK(seen ==
        std::vector<std::pair<Kind, std::int64_t>>{{Kind::Progress, 1}, {Kind::Report, 1000}});
  CHECK(result.finished.progress.value().done == 2000);

  const auto silent = run_locally<tell>(5, {}, [](const TrialEvent& event) {
    CHECK(event.kind == TrialEvent::Kind::Report);
    CHECK_FALSE(event.progress.has_value());
    return Verdict::Continue;
  });
  CHECK_FALSE(silent.finished.progress.has_value());
}

TEST_CASE("what a local trainable throws is thrown as it is", "[api][local]") {
  CHECK_THROWS_AS(run_locally<fail>(1, {}, nullptr), std::range_error);
}

TEST_CASE("a local rendezvous hands over values, writes keys once, and names the key it waited for",
          "[api][local]") {
  LocalRendezvous rendezvous;
  std::thread other([&] { rendezvous.set("address", "host:1"); });
  CHECK(rendezvous.get("address", kGuard) == "host:1");
  other.join();
  rendezvous.set("address", "host:1");
  CHECK_THROWS_AS(rendezvous.set("address", "host:2"), Refused);
  CHECK_THROWS_AS(rendezvous.set("big", std::string(70'000, 'x')), TooLarge);
  CHECK_THROWS_WITH(rendezvous.get("nothing", 1ms), Catch::Contains("\"nothing\""));
}
