#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "store/catalog/shortage.hpp"

using namespace troupe::store;

namespace {

const Refusal kFull{Refusal::Kind::DiskFull, "the disk is full"};

}  // namespace

TEST_CASE("a shortage has one round of recalls, and the next one a higher number",
          "[store][catalog][shortage]") {
  Shortage shortage;
  const auto first = shortage.open_round();
  REQUIRE(first);
  CHECK_FALSE(shortage.open_round());
  shortage.end();

  const auto second = shortage.open_round();
  REQUIRE(second);
  CHECK(*second > *first);
}

TEST_CASE("a process is waited for until it has answered this round, or has ended",
          "[store][catalog][shortage]") {
  Shortage shortage;
  const auto old = shortage.open_round();
  shortage.end();
  const auto round = shortage.open_round();
  for (ProcessId process = 1_process; process <= 2_process; ++process) shortage.on_recall(process);

  shortage.on_answer(1_process, *old);
  shortage.on_process_ended(2_process);
  shortage.check();
  CHECK(shortage.awaits_answers());
  shortage.on_answer(1_process, *round);
  CHECK_FALSE(shortage.awaits_answers());
}

TEST_CASE("nobody is waited for once the recall is over, or the shortage",
          "[store][catalog][shortage]") {
  Shortage shortage;
  shortage.open_round();
  shortage.on_recall(1_process);
  shortage.on_recall_over();
  CHECK_FALSE(shortage.awaits_answers());

  shortage.on_recall(2_process);
  shortage.end();
  shortage.check();
  CHECK_FALSE(shortage.awaits_answers());
}

TEST_CASE("a disk that fails too often is given up until the shortage ends",
          "[store][catalog][shortage]") {
  Shortage shortage;
  for (std::uint64_t number = 1; number <= Shortage::kMostDiskFailures; ++number) {
    CHECK_FALSE(shortage.is_disk_given_up());
    shortage.on_disk_failed({1_process, number}, kFull);
    shortage.check();
  }
  CHECK(shortage.is_disk_given_up());
  REQUIRE(shortage.disk_failure());
  CHECK(shortage.disk_failure()->kind == Refusal::Kind::DiskFull);

  CHECK(shortage.end().size() == Shortage::kMostDiskFailures);
  shortage.check();
  CHECK_FALSE(shortage.is_disk_given_up());
  CHECK_FALSE(shortage.disk_failure());
  CHECK(shortage.end().empty());
}

TEST_CASE("what is on its way to the disk outlives the shortage that it left in",
          "[store][catalog][shortage]") {
  Shortage shortage;
  shortage.on_write_began(3 * kPageBytes);
  shortage.on_write_began(kPageBytes);
  shortage.end();
  CHECK(shortage.leaving_bytes() == 4 * kPageBytes);
  shortage.on_write_ended(3 * kPageBytes);
  shortage.on_write_ended(kPageBytes);
  CHECK(shortage.leaving_bytes() == 0);
}
