#include "plan/gang_size.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "config/name.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

constexpr int kMostRanks = 1 << 16;

std::optional<int> rank_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (count < 1 || count > kMostRanks) return std::nullopt;
  return count;
}

/// As many of the ranks as make so many on each node.
int dealt_out(int ranks, int per_node) {
  const int each = std::max(1, per_node);
  return ranks / each * each;
}

}  // namespace

GangSize parse_gang_size(const std::string& text) {
  if (text == "gpus" || text == "gpu") return {.every_gpu = true};
  // mpirun's "-np 4" is read as -n with this value.
  if (text == "p") refuse("there is no option '-np'; it is '-n' here");
  const auto colon = text.find(':');
  const auto least = rank_count(std::string_view(text).substr(0, colon));
  const auto most =
      colon == std::string::npos ? least : rank_count(std::string_view(text).substr(colon + 1));
  if (!least || !most || *least > *most) {
    refuse(
        fmt::format("-n '{}' is no number of ranks: give 4, or 2:8 for as many as fit "
                    "between those, or gpus for one on each GPU; at most {}",
                    config::printable(text), kMostRanks));
  }
  return {.least = *least, .most = *most};
}

int ranks_to_await(const SizeBefore& before) {
  return std::max(before.ranks, before.goal.value_or(0));
}

int least_ranks(const GangSize& size, int per_node) {
  const int each = std::max(1, per_node);
  return (size.least + each - 1) / each * each;
}

int most_ranks(const GangSize& size, int per_node) { return dealt_out(size.most, per_node); }

int ranks_to_ask_for(const GangSize& size, int per_node, int room, const SizeBefore& before) {
  const int least = least_ranks(size, per_node);
  const int most = dealt_out(std::min(size.most, before.goal.value_or(size.most)), per_node);
  return std::max(least, std::min(room, most));
}

int ranks_after(int ranks, const GangSize& size, int per_node, const SizeBefore& before) {
  const int fewer = before.ranks < ranks ? std::max(ranks / 2, before.ranks) : ranks / 2;
  return std::max(least_ranks(size, per_node), dealt_out(fewer, per_node));
}

}  // namespace troupe::launch
