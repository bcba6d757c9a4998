#include "zero/gathering/use_order.hpp"

#include <optional>
#include <vector>

#include "support/catch.hpp"

using namespace troupe::train;

namespace {

bool is_any(std::int64_t) { return true; }

/// What is expected after each of these was used, -1 where nothing is.
std::vector<std::int64_t> expected_in(UseOrder& order, const std::vector<std::int64_t>& used) {
  std::vector<std::int64_t> expected;
  for (const auto bucket : used) {
    order.note(bucket);
    expected.push_back(order.next(&is_any).value_or(-1));
  }
  return expected;
}

}  // namespace

TEST_CASE("what was used after two buckets is expected after them, forwards and backwards",
          "[train][zero][order]") {
  UseOrder order;
  const std::vector<std::int64_t> pass{0, 1, 2, 2, 3, 2, 1, 0};
  CHECK(expected_in(order, pass) == std::vector<std::int64_t>{-1, -1, -1, -1, -1, -1, -1, -1});
  order.begin_anew();
  CHECK(order.next(&is_any) == 0);
  CHECK(expected_in(order, pass) == std::vector<std::int64_t>{1, 2, 3, 3, 2, 1, 0, -1});
}

TEST_CASE("a bucket that is here is passed over for the one behind it", "[train][zero][order]") {
  UseOrder order;
  // A layer that begins in bucket 1 and ends in bucket 2.
  expected_in(order, {0, 1, 2, 1, 3, 4});
  order.begin_anew();
  expected_in(order, {0, 1, 2});
  CHECK(order.next(&is_any) == 1);
  CHECK(order.next([](auto bucket) { return bucket > 2; }) == 3);
  CHECK(order.next([](auto bucket) { return bucket == 4; }) == 4);
  CHECK(order.next([](auto) { return false; }) == std::nullopt);
}

TEST_CASE("the last order counts", "[train][zero][order]") {
  UseOrder order;
  expected_in(order, {0, 1, 2});
  order.begin_anew();
  expected_in(order, {0, 1, 3});
  order.begin_anew();
  CHECK(expected_in(order, {0, 1}) == std::vector<std::int64_t>{1, 3});
}

TEST_CASE("two buckets that take turns for ever are no endless search", "[train][zero][order]") {
  UseOrder order;
  for (int i = 0; i < 10; ++i) expected_in(order, {0, 1});
  CHECK(order.next([](auto bucket) { return bucket > 1; }) == std::nullopt);
}

TEST_CASE("an order without end is forgotten now and then", "[train][zero][order]") {
  UseOrder order;
  const auto most = static_cast<std::int64_t>(UseOrder::kMost);
  for (std::int64_t bucket = 0; bucket < most; ++bucket) order.note(bucket);
  order.begin_anew();
  CHECK(order.next(&is_any) == 0);
  order.note(most);
  order.begin_anew();
  CHECK(order.next(&is_any) == most);
  CHECK(expected_in(order, {0, 1}) == std::vector<std::int64_t>{-1, -1});
}
