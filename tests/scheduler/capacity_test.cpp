#include "tables/capacity.hpp"

#include <catch2/catch.hpp>

using namespace troupe::scheduler;

namespace {
const Resources kHalf{{"gpu", 0.5}};
const Resources kTwo{{"gpu", 2}};
}  // namespace

TEST_CASE("a fraction goes to a GPU that is shared already", "[scheduler][capacity]") {
  Capacity node{{}, 2};
  CHECK(node.take(kHalf).gpus == std::vector<GpuIndex>{0});
  CHECK(node.take(kHalf).gpus == std::vector<GpuIndex>{0});
  CHECK(node.take(kHalf).gpus == std::vector<GpuIndex>{1});
  CHECK(node.amounts().of(kGpu) == Amount::units(0.5));
}

TEST_CASE("whole GPUs are only untouched ones, however much is free in parts",
          "[scheduler][capacity]") {
  Capacity node{{}, 3};
  const auto shared = node.take({{"gpu", 0.25}});
  CHECK(node.take(kTwo).gpus == std::vector<GpuIndex>{1, 2});
  CHECK_FALSE(node.fits({{"gpu", 1}}));
  CHECK(node.fits({{"gpu", 0.75}}));
  node.give(shared);
  CHECK(node.fits({{"gpu", 1}}));
}

TEST_CASE("slots count the processes that have room together", "[scheduler][capacity]") {
  Capacity node{{{"cpu", 5}}, 2};
  CHECK(node.slots({{"cpu", 2}}, 10) == 2);
  CHECK(node.slots({{"cpu", 1}, {"gpu", 1}}, 10) == 2);
  CHECK(node.slots({{"gpu", 0.4}}, 10) == 4);
  CHECK(node.slots({}, 10) == 10);
  CHECK(node.slots({{"disk", 1}}, 10) == 0);
}

TEST_CASE("what is kept for somebody is not there for others", "[scheduler][capacity]") {
  const Capacity node{{{"cpu", 4}}, 2};
  const auto left = node.without({{"cpu", 3}, {"gpu", 1}});
  CHECK(left.amounts() == Resources{{"cpu", 1}, {"gpu", 1}});
  CHECK(node.without({{"cpu", 9}}).amounts() == Resources{{"gpu", 2}});
}
