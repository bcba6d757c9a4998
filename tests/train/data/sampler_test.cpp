#include <troupe/train/data/sampler.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

using troupe::train::DistributedSampler;
using Rows = std::vector<std::int64_t>;

namespace {

Rows of_rank(std::size_t rows, int rank, int ranks, bool drop_last = false) {
  return DistributedSampler(rows, rank, ranks, {.shuffle = false, .drop_last = drop_last})
      .indices();
}

}  // namespace

// The figures are what torch.utils.data.DistributedSampler(range(n), ranks, rank, shuffle=False)
// gives.
TEST_CASE("rows are dealt out in turn and the head is repeated, as PyTorch does",
          "[train][sampler]") {
  CHECK(of_rank(10, 0, 3) == Rows{0, 3, 6, 9});
  CHECK(of_rank(10, 1, 3) == Rows{1, 4, 7, 0});
  CHECK(of_rank(10, 2, 3) == Rows{2, 5, 8, 1});
  CHECK(of_rank(8, 1, 4) == Rows{1, 5});
}

TEST_CASE("a data set smaller than the gang is repeated as often as it takes, as PyTorch does",
          "[train][sampler]") {
  CHECK(of_rank(2, 0, 5) == Rows{0});
  CHECK(of_rank(2, 3, 5) == Rows{1});
  CHECK(of_rank(2, 4, 5) == Rows{0});
}

TEST_CASE("drop_last leaves the tail out, as PyTorch does", "[train][sampler]") {
  CHECK(of_rank(11, 0, 3, true) == Rows{0, 3, 6});
  CHECK(of_rank(11, 2, 3, true) == Rows{2, 5, 8});
  CHECK(of_rank(9, 2, 3, true) == Rows{2, 5, 8});
  CHECK(of_rank(2, 0, 3, true).empty());
}

TEST_CASE("an empty data set gives nobody anything", "[train][sampler]") {
  CHECK(of_rank(0, 1, 2).empty());
}

TEST_CASE("shuffled, the ranks together see every row, equally many each", "[train][sampler]") {
  const std::size_t rows = 1003;
  std::multiset<std::int64_t> seen;
  for (int rank = 0; rank < 4; ++rank) {
    DistributedSampler sampler(rows, rank, 4, {.seed = 5});
    const auto mine = sampler.indices();
    CHECK(mine.size() == 251);
    CHECK(mine.size() == sampler.size());
    seen.insert(mine.begin(), mine.end());
  }
  CHECK(seen.size() == 1004);
  CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == rows);
}

TEST_CASE("epoch and seed choose the order, and nothing else does", "[train][sampler]") {
  DistributedSampler sampler(100, 0, 1, {.seed = 1});
  const auto first = sampler.indices();
  CHECK(sampler.indices() == first);
  sampler.set_epoch(1);
  CHECK(sampler.indices() != first);
  CHECK(sampler.indices() == DistributedSampler(100, 0, 1, {.seed = 2}).indices());
  CHECK(DistributedSampler(5, 0, 1, {.seed = 42}).indices() == Rows{2, 3, 4, 0, 1});
}

TEST_CASE("a rank outside of the gang is refused", "[train][sampler]") {
  CHECK_THROWS_AS(DistributedSampler(1, 2, 2), std::invalid_argument);
  CHECK_THROWS_AS(DistributedSampler(1, 0, 0), std::invalid_argument);
}
