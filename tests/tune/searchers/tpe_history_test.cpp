#include "searchers/tpe/history.hpp"

#include <catch2/catch.hpp>

namespace tpe_history_test {

using namespace troupe::tune;

namespace {

using Numbers = std::vector<TpeHistory::Number>;

/// Six trials at 0.5, 0.4, ...: complete with 3, complete with 1, stopped at t=5 and at t=9, failed,
/// running.
TpeHistory six() {
  TpeHistory history(1);
  for (int trial = 0; trial < 6; ++trial) history.begin({0.5 - 0.1 * trial});
  history.end(4, TpeStanding::Failed, 0, 1);
  history.end(3, TpeStanding::Stopped, 2, 9);
  history.end(0, TpeStanding::Complete, 3, 10);
  history.end(2, TpeStanding::Stopped, 0.5, 5);
  history.end(1, TpeStanding::Complete, 1, 10);
  return history;
}

}  // namespace

TEST_CASE("as many trials count as good for TPE as Optuna's gamma says", "[tune][tpe]") {
  // min(ceil(0.1 n), 25)
  for (const auto& [finished, good] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 0}, {1, 1}, {10, 1}, {11, 2}, {100, 10}, {241, 25}, {250, 25}, {1000, 25}}) {
    CAPTURE(finished);
    CHECK(good_count(finished, 0.1, 25) == good);
  }
  CHECK(good_count(100, 0.15, 25) == 15);
}

TEST_CASE("TPE's good trials are complete ones by value, then stopped ones by length",
          "[tune][tpe]") {
  const auto history = six();
  CHECK(history.finished() == 5);
  CHECK(history.split(1, true).good == Numbers{1});
  CHECK(history.split(2, true).good == Numbers{0, 1});
  CHECK(history.split(3, true).good == Numbers{0, 1, 3});
  CHECK(history.split(9, true).good == Numbers{0, 1, 2, 3});
}

TEST_CASE("TPE's bad trials are all others, running ones if they count", "[tune][tpe]") {
  const auto history = six();
  CHECK(history.split(1, true).bad == Numbers{0, 2, 3, 4, 5});
  CHECK(history.split(1, false).bad == Numbers{0, 2, 3, 4});
  CHECK(history.split(9, true).bad == Numbers{4, 5});
}

TEST_CASE("TPE's trials are sorted by each coordinate", "[tune][tpe]") {
  auto history = six();
  history.begin({0.4});
  CHECK(history.sorted(0) == Numbers{5, 4, 3, 2, 1, 6, 0});
}

}  // namespace tpe_history_test
