#include <troupe/train/data/sampler.hpp>

#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::train {
namespace {

/// Uniform in [0, bound): what a division leaves over at the top is drawn again.
std::uint64_t below(std::uint64_t bound, std::mt19937_64& random) {
  const auto most = std::numeric_limits<std::uint64_t>::max();
  const auto fair = most - most % bound;
  for (;;) {
    if (const auto drawn = random(); drawn < fair) return drawn % bound;
  }
}

}  // namespace

DistributedSampler::DistributedSampler(std::size_t rows, int rank, int ranks,
                                       SamplerOptions options)
    : rows_(rows),
      rank_(static_cast<std::size_t>(rank)),
      ranks_(static_cast<std::size_t>(ranks)),
      options_(options) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    throw std::invalid_argument(fmt::format("a sampler for rank {} of {} ranks", rank, ranks));
  }
}

std::size_t DistributedSampler::size() const {
  return options_.drop_last ? rows_ / ranks_ : (rows_ + ranks_ - 1) / ranks_;
}

std::vector<std::int64_t> DistributedSampler::order() const {
  std::vector<std::int64_t> order(rows_);
  std::iota(order.begin(), order.end(), 0);
  if (!options_.shuffle) return order;
  std::mt19937_64 random(options_.seed + epoch_);
  for (std::size_t i = rows_; i > 1; --i) std::swap(order[i - 1], order[below(i, random)]);
  return order;
}

std::vector<std::int64_t> DistributedSampler::indices() const {
  const auto all = order();
  std::vector<std::int64_t> mine(all.empty() ? 0 : size());
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = all[(i * ranks_ + rank_) % rows_];
  return mine;
}

}  // namespace troupe::train
