#include "checkpoint/kept_checkpoints.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace troupe;
using namespace troupe::train;
using Catch::Contains;
using Best = CheckpointOptions::Best;

namespace {

/// The numbers of the checkpoints that stay after reports of these losses.
std::vector<int> kept_after(const std::vector<double>& losses, int keep_best, Best best) {
  KeptCheckpoints kept({.keep_best = keep_best, .metric = "loss", .best = best});
  std::vector<int> there;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    there.push_back(static_cast<int>(i));
    for (const auto& removed : kept.add(std::to_string(i), {{"epoch", i}, {"loss", losses[i]}}))
      std::erase(there, std::stoi(removed.string()));
  }
  return there;
}

}  // namespace

TEST_CASE("the best checkpoints and the last one stay", "[train][checkpoint][kept]") {
  const std::vector<double> losses{3, 1, 2, 1, 5};
  CHECK(kept_after(losses, 1, Best::Lowest) == std::vector{1, 4});
  CHECK(kept_after(losses, 2, Best::Lowest) == std::vector{1, 3, 4});
  CHECK(kept_after(losses, 1, Best::Highest) == std::vector{4});
  CHECK(kept_after({3, 1}, 1, Best::Highest) == std::vector{0, 1});
  CHECK(kept_after({NAN, 7, NAN}, 1, Best::Lowest) == std::vector{1, 2});
  CHECK(kept_after({NAN, -7, NAN}, 1, Best::Highest) == std::vector{1, 2});
}

TEST_CASE("a checkpoint that is reported twice counts once, with its last value",
          "[train][checkpoint][kept]") {
  KeptCheckpoints kept({.keep_best = 1, .metric = "loss"});
  CHECK(kept.add("a", {{"loss", 1}}).empty());
  CHECK(kept.add("a", {{"loss", 3}}).empty());
  CHECK(kept.add("b", {{"loss", 2}}) == std::vector<std::filesystem::path>{"a"});
}

TEST_CASE("options by which no checkpoint can be kept are refused", "[train][checkpoint][kept]") {
  CHECK_THROWS_WITH(KeptCheckpoints({.keep_best = -1, .metric = "loss"}),
                    Contains("keep_best is -1"));
  CHECK_THROWS_WITH(KeptCheckpoints({.keep_best = 2}), Contains("without a metric"));
  CHECK_THROWS_WITH(KeptCheckpoints({.metric = "loss"}), Contains("set .keep_best too"));
  const KeptCheckpoints kept({.keep_best = 2, .metric = "loss"});
  CHECK_THROWS_WITH(kept.check({{"los", 1}, {"epoch", 2}}),
                    Contains("without the metric 'loss'") && Contains("has los, epoch"));
  CHECK_THROWS_WITH(kept.check({}), Contains("the report has none"));
  CHECK_NOTHROW(kept.check({{"loss", 1}}));
  CHECK_NOTHROW(KeptCheckpoints({}).check({}));
}
