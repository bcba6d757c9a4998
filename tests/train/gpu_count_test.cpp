// How many ranks AllGpus is. Nodes may be told of GPUs that are not there.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <torch/utils.h>

#include "guard.hpp"
#include "support/catch.hpp"

using namespace troupe;
using Catch::Contains;
using troupe::test::kGuard;

namespace {

int count_ranks(train::Context& ctx, const int&) { return ctx.world_size(); }

/// The GPUs are told of and not there: the ranks have no use of NCCL.
train::RunOptions all_gpus(double each) {
  return {.workers = train::AllGpus,
          .each = {.cpus = 0, .gpus = each},
          .context = {.backend = train::ContextOptions::Backend::Host},
          .placement_timeout = kGuard};
}

}  // namespace

TEST_CASE("a run of all GPUs has as many ranks as they have room for", "[train][run][gpus]") {
  const auto cluster = init({.cpus = 1, .gpus = 3});
  CHECK(train::run<count_ranks>(0, all_gpus(0)).value == 3);
  CHECK(train::run<count_ranks>(0, all_gpus(1)).value == 3);
  CHECK(train::run<count_ranks>(0, all_gpus(2)).value == 1);
  CHECK(train::run<count_ranks>(0, all_gpus(0.5)).value == 6);
  CHECK(train::run<count_ranks>(0, all_gpus(0.4)).value == 6);
  CHECK_THROWS_WITH(train::run<count_ranks>(0, all_gpus(4)),
                    Contains("none of the cluster's 1 nodes has the 4 GPUs of a rank"));
  auto options = all_gpus(1);
  options.debugger.rank = 3;
  CHECK_THROWS_WITH(train::run<count_ranks>(0, options), Contains("the run has ranks 0 to 2"));
}

TEST_CASE("a run of all GPUs says that there are none", "[train][run][gpus]") {
  const auto cluster = init({.cpus = 1, .gpus = 0});
  CHECK_THROWS_AS(train::run<count_ranks>(0, all_gpus(1)), Impossible);
  CHECK_THROWS_WITH(train::run<count_ranks>(0, all_gpus(1)),
                    Contains("start `troupe worker` where there are GPUs"));
}

TEST_CASE("a run of all GPUs refuses what it cannot count", "[train][run][gpus]") {
  auto options = all_gpus(1);
  SECTION("in this process") {
    options.where = train::Where::InProcess;
    CHECK_THROWS_WITH(train::run<count_ranks>(0, options),
                      Contains("RunOptions::workers is AllGpus") && Contains("one rank"));
  }
  SECTION("labels") {
    options.each.labels = {{"room", "7"}};
    CHECK_THROWS_WITH(train::run<count_ranks>(0, options), Contains("labels or resources"));
  }
  SECTION("an amount that cannot be") {
    options.each.gpus = -1;
    CHECK_THROWS_WITH(train::run<count_ranks>(0, options), Contains("each.gpus is -1"));
  }
}
