#include "values/dominant_shares.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace troupe::scheduler;

namespace {

constexpr Duration kWindow = 10s;

Resources held_cpus(double count) { return {{"cpu", count}}; }

/// A hundred CPUs and ten GPUs, and the shares of jobs in them.
struct Sharers {
  DominantShares shares{kWindow};
  TimePoint now{};

  Sharers() { shares.set_total({{"cpu", 100}, {"gpu", 10}}); }
  DominantShare job(double weight = 1) const {
    DominantShare share;
    shares.start(share, weight, now);
    return share;
  }
  /// That has held so many CPUs for long.
  DominantShare job_of(double held) {
    auto share = job();
    shares.use(share, held_cpus(held), now);
    pass(20 * kWindow, {&share});
    return share;
  }
  void pass(Duration time, std::initializer_list<DominantShare*> jobs) {
    now += time;
    const auto review = shares.begin_review(now);
    for (auto* job : jobs) shares.review(*job, *review, now);
  }
  std::string wrong(const DominantShare& share) const {
    return shares.broken_invariant(share).value_or("nothing");
  }
};

}  // namespace

TEST_CASE("a job's share is the largest part that it holds of any resource, by its weight",
          "[scheduler][shares]") {
  const Sharers sharers;
  auto even = sharers.job();
  auto heavy = sharers.job(2);
  for (auto* share : {&even, &heavy})
    sharers.shares.use(*share, {{"cpu", 20}, {"gpu", 5}}, sharers.now);
  CHECK(even.current() == Approx(0.5));
  CHECK(heavy.current() == Approx(0.25));
  sharers.shares.stop_using(even, {{"gpu", 4}}, sharers.now);
  CHECK(even.current() == Approx(0.2));
  for (const double nonsense : {0., -1., std::nan("")}) CHECK(sharers.job(nonsense).weight() == 1);
}

TEST_CASE("a share follows what there is", "[scheduler][shares]") {
  Sharers sharers;
  auto share = sharers.job();
  sharers.shares.use(share, held_cpus(20), sharers.now);
  sharers.shares.set_total({{"cpu", 40}});
  CHECK(sharers.wrong(share) != "nothing");  // 2: it is not measured yet
  sharers.shares.measure(share, sharers.now);
  CHECK(share.current() == Approx(0.5));
  CHECK(sharers.wrong(share) == "nothing");
}

TEST_CASE("an average forgets what was long ago, and counts each share for as long as it was held",
          "[scheduler][shares]") {
  Sharers sharers;
  auto share = sharers.job();
  sharers.shares.use(share, held_cpus(60), sharers.now);
  sharers.now += 1s;
  sharers.shares.use(share, held_cpus(30), sharers.now);
  sharers.pass(2s, {&share});
  const auto lately = (0.6 * 1 + 0.9 * 2) / 3;
  CHECK(share.average() == Approx(lately * (1 - std::exp(-0.3))));
  CHECK_FALSE(sharers.shares.begin_review(sharers.now));

  sharers.pass(20 * kWindow, {&share});
  CHECK(share.average() == Approx(0.9));
  sharers.shares.stop_using(share, held_cpus(90), sharers.now);
  sharers.pass(kWindow, {&share});
  CHECK(share.average() == Approx(0.9 * std::exp(-1)));
}

TEST_CASE("a quarter more is two ranks, and a sixteenth is not", "[scheduler][shares]") {
  for (double held = 4; held <= 64; held *= 1.03) {
    CAPTURE(held);
    Sharers sharers;
    const auto some = sharers.job_of(held);
    CHECK(sharers.job_of(held * 1.251).has_had_more_than(some));
    CHECK_FALSE(sharers.job_of(held * 1.06).has_had_more_than(some));
  }
}

TEST_CASE("a job gives back what leaves it no less than another then has", "[scheduler][shares]") {
  Sharers sharers;
  const auto& shares = sharers.shares;
  const auto large = sharers.job_of(50);
  const auto small = sharers.job_of(45);
  const auto step = shares.step_of(small, {}, held_cpus(2));
  CHECK(shares.gives_way(large, held_cpus(2), step));
  CHECK_FALSE(shares.gives_way(large, held_cpus(4), step));  // it would have less
  CHECK_FALSE(shares.gives_way(small, held_cpus(2), step));  // it is the same job
  CHECK_FALSE(
      shares.gives_way(large, held_cpus(2), shares.step_of(small, held_cpus(4), held_cpus(2))));

  auto returning = large;
  DominantShares::expect_back(returning, held_cpus(10));
  CHECK(shares.kept(returning) == Approx(0.4));
  CHECK_FALSE(shares.gives_way(returning, held_cpus(2), step));
}

TEST_CASE("a job that has had more for a while gives way to a large request too",
          "[scheduler][shares]") {
  Sharers sharers;
  const auto& shares = sharers.shares;
  const auto large = sharers.job_of(60);
  const auto small = sharers.job_of(40);
  CHECK(shares.gives_way(large, held_cpus(50), shares.step_of(small, {}, held_cpus(50))));
  CHECK_FALSE(shares.gives_way(small, held_cpus(1), shares.step_of(large, {}, held_cpus(1))));

  auto now_less = large;
  sharers.shares.stop_using(now_less, held_cpus(30), sharers.now);
  CHECK_FALSE(shares.gives_way(now_less, held_cpus(1), shares.step_of(small, {}, held_cpus(1))));
}

TEST_CASE("more that is returned than is used is found", "[scheduler][shares]") {
  const Sharers sharers;
  auto share = sharers.job();
  sharers.shares.use(share, held_cpus(1), sharers.now);
  DominantShares::expect_back(share, held_cpus(1));
  CHECK(sharers.wrong(share) == "nothing");
  DominantShares::expect_back(share, held_cpus(1));
  CHECK(sharers.wrong(share) != "nothing");  // 1
  DominantShares::stop_expecting(share, held_cpus(2));
  CHECK(sharers.wrong(share) == "nothing");
}

TEST_CASE("whatever jobs use, shares stay in bounds and no two give way to each other",
          "[scheduler][shares][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  Sharers sharers;
  const auto& shares = sharers.shares;
  std::array jobs{sharers.job(), sharers.job(2), sharers.job(0.5), sharers.job()};
  std::array<double, 4> most{};
  for (int i = 0; i < 300; ++i) {
    sharers.now += std::chrono::milliseconds{random() % 500};
    const auto at = random() % jobs.size();
    auto& job = jobs[at];
    const Resources some{{"cpu", static_cast<double>(random() % 8)},
                         {"gpu", static_cast<double>(random() % 2)}};
    const auto kept = job.used().without(job.returning());
    switch (random() % 4) {
      case 0:
        shares.use(job, some, sharers.now);
        break;
      case 1:
        if (kept.covers(some)) shares.stop_using(job, some, sharers.now);
        break;
      case 2:
        if (kept.covers(some)) DominantShares::expect_back(job, some);
        break;
      default:
        sharers.pass(100ms, {&jobs[0], &jobs[1], &jobs[2], &jobs[3]});
    }
    most[at] = std::max(most[at], job.current());
    Foremost foremost;
    for (const auto& other : jobs) foremost.add(shares, other);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      REQUIRE(sharers.wrong(jobs[j]) == "nothing");
      REQUIRE(jobs[j].average() <= most[j] + 1e-9);  // 3
      const auto back = shares.step_of(jobs[j], {}, {{"cpu", 1}});
      const auto forth = shares.step_of(job, {}, {{"cpu", 1}});
      const bool both_grow = back.to > back.from && forth.to > forth.from;
      const bool gives = shares.gives_way(job, {{"cpu", 1}}, back);
      const bool is_given = shares.gives_way(jobs[j], {{"cpu", 1}}, forth);
      REQUIRE_FALSE((gives && is_given && both_grow));  // 4
      REQUIRE((foremost.may_give_way(back) || !gives));
    }
  }
}
