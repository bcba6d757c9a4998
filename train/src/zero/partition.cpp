#include "zero/partition.hpp"

#include <algorithm>
#include <utility>

namespace troupe::train {
namespace {

std::int64_t aligned(std::int64_t count) {
  return (count + Partition::kAlignment - 1) / Partition::kAlignment * Partition::kAlignment;
}

}  // namespace

Partition partition(std::vector<std::int64_t> sizes, int ranks) {
  Partition made{.sizes = std::move(sizes), .offsets = {}, .part = 0, .ranks = ranks};
  std::int64_t end = 0;
  for (const auto size : made.sizes) {
    made.offsets.push_back(end);
    end += aligned(size);
  }
  made.part = aligned((end + ranks - 1) / ranks);
  return made;
}

std::vector<Piece> Partition::pieces_of(int rank) const {
  const auto from = rank * part, to = from + part;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto first = std::max(from, offsets[i]);
    const auto last = std::min(to, offsets[i] + sizes[i]);
    if (first < last) pieces.push_back({i, first - offsets[i], last - first});
  }
  return pieces;
}

}  // namespace troupe::train
