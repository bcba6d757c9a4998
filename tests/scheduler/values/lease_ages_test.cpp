#include "values/lease_ages.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "values/few_records.hpp"

using namespace std::chrono_literals;
using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

/// Two jobs with a driver each, and the leases that these have.
struct Holders {
  FewRecords records;
  LeaseAges ages;
  Node& node = records.node();
  std::vector<const Job*> jobs;
  std::vector<Process*> drivers;

  Holders() {
    for (int i = 0; i < 2; ++i) {
      auto& job = records.job();
      jobs.push_back(&job);
      drivers.push_back(&records.process(job, node));
    }
  }
  /// Whose process has started.
  Lease& lease(Process& driver) { return records.lease(driver, driver); }
  Lease& granted(TimePoint at) {
    auto& lease = this->lease(*drivers[0]);
    ages.grant(lease, at);
    return lease;
  }
  std::vector<Lease*> by_age() {
    std::vector<Lease*> leases;
    for (auto& lease : ages) leases.push_back(&lease);
    return leases;
  }
  std::string wrong() { return ages.broken_invariant(records.leases(), jobs).value_or("nothing"); }
};

}  // namespace

TEST_CASE("a granted lease may be recalled once, and is then counted until it is back",
          "[scheduler][ages]") {
  Holders holders;
  auto& old = holders.granted(1s);
  auto& young = holders.granted(2s);
  CHECK(holders.by_age() == std::vector{&old, &young});
  CHECK(holders.jobs[0]->recallable == 2);

  CHECK(holders.ages.recall(old));
  CHECK_FALSE(holders.ages.recall(old));
  CHECK(holders.by_age() == std::vector{&young});
  CHECK(holders.ages.recalled() == 1);
  CHECK(holders.jobs[0]->recallable == 1);
  CHECK(holders.wrong() == "nothing");

  holders.ages.forget(old);
  holders.records.remove(old);
  CHECK(holders.ages.recalled() == 0);
  CHECK(holders.wrong() == "nothing");
}

TEST_CASE("a lease whose process starts is not recalled", "[scheduler][ages]") {
  Holders holders;
  auto& driver = *holders.drivers[0];
  auto& lease = holders.lease(driver);
  lease.request = &holders.records.request(driver, {});
  CHECK_FALSE(holders.ages.recall(lease));
  holders.ages.forget(lease);
  CHECK(holders.ages.recalled() == 0);
  CHECK(holders.wrong() == "nothing");
}

TEST_CASE("leases that are out of their order, or miscounted, are found", "[scheduler][ages]") {
  Holders holders;
  auto& lease = holders.granted(1s);
  auto& other = holders.granted(2s);
  CHECK(holders.wrong() == "nothing");
  lease.recalled = true;
  CHECK(holders.wrong() != "nothing");  // 1
  lease.recalled = false;
  other.granted_at = 0s;
  CHECK(holders.wrong() != "nothing");  // 2
  other.granted_at = 2s;
  ++holders.drivers[1]->job->recallable;
  CHECK(holders.wrong() != "nothing");  // 3
  --holders.drivers[1]->job->recallable;
  holders.records.remove(other);
  CHECK(holders.wrong() != "nothing");  // 3: it went and was not forgotten
}

TEST_CASE("the order of leases agrees with a list of them, whichever are recalled and forgotten",
          "[scheduler][ages][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  Holders holders;
  std::vector<Lease*> granted;
  std::vector<Lease*> recalled;
  TimePoint now{};
  for (int i = 0; i < 400; ++i) {
    now += std::chrono::milliseconds{random() % 3};
    if (random() % 2 == 0) {
      granted.push_back(&holders.lease(*holders.drivers[random() % 2]));
      holders.ages.grant(*granted.back(), now);
    } else if (auto& from = random() % 2 == 0 ? granted : recalled; !from.empty()) {
      auto* lease = from[random() % from.size()];
      const bool is_granted = &from == &granted;
      std::erase(from, lease);
      if (is_granted && random() % 2 == 0) {
        REQUIRE(holders.ages.recall(*lease));
        recalled.push_back(lease);
      } else {
        holders.ages.forget(*lease);
        holders.records.remove(*lease);
      }
    }
    REQUIRE(holders.by_age() == granted);
    REQUIRE(holders.ages.recalled() == recalled.size());
    REQUIRE(holders.wrong() == "nothing");
  }
}
