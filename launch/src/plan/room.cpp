#include "plan/room.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "words/shell_word.hpp"

namespace troupe::launch {
namespace {

constexpr double kTolerance = 1e-6;

/// Ranks with a part of a GPU each: what is free of several GPUs may be no whole one, which only
/// whoever places the ranks knows.
double ranks_on_gpus(double gpus, double part) {
  const double whole = std::floor(gpus + kTolerance);
  const double each = std::floor(1 / part + kTolerance);
  return whole * each + std::floor((gpus - whole) / part + kTolerance);
}

int ranks_on(const NodeRoom& node, const RankNeeds& needs) {
  if (!has_labels(node, needs)) return 0;
  double most = 1 << 16;
  if (needs.cpus > 0) most = std::min(most, node.cpus / needs.cpus);
  if (needs.gpus >= 1) most = std::min(most, node.gpus / needs.gpus);
  if (needs.gpus > 0 && needs.gpus < 1) most = std::min(most, ranks_on_gpus(node.gpus, needs.gpus));
  if (needs.memory_gb > 0) most = std::min(most, node.memory_gb / needs.memory_gb);
  return static_cast<int>(std::floor(most + kTolerance));
}

}  // namespace

bool has_labels(const NodeRoom& node, const RankNeeds& needs) {
  return std::ranges::all_of(needs.labels, [&](const auto& label) {
    return std::ranges::find(node.labels, label) != node.labels.end();
  });
}

int ranks_that_fit(const RankNeeds& needs, const RankLayout& layout,
                   const std::vector<NodeRoom>& nodes) {
  int all = 0, largest = 0, used = 0;  // nodes with room for one rank, or for `per_node`
  const int each = std::max(1, layout.per_node);
  for (const auto& node : nodes) {
    const int here = ranks_on(node, needs);
    all += here;
    largest = std::max(largest, here);
    if (here >= each) ++used;
  }
  if (layout.per_node > 0) return used * layout.per_node;
  if (layout.strategy == Strategy::StrictSpread) return used;
  return layout.strategy == Strategy::StrictPack ? largest : all;
}

namespace {

/// The most CPUs of a rank with which so many have room, below those that were asked for.
std::optional<double> cpus_with_room(int ranks, RankNeeds needs, const RankLayout& layout,
                                     const std::vector<NodeRoom>& nodes) {
  std::vector<double> less;
  const auto most = std::ranges::max(nodes, {}, &NodeRoom::cpus).cpus;
  for (double cpus = std::floor(std::min(most, needs.cpus)); cpus >= 1; --cpus)
    less.push_back(cpus);
  less.insert(less.end(), {0.5, 0.25, 0.1});
  std::erase_if(less, [&](double cpus) { return cpus >= needs.cpus; });
  for (const double cpus : less) {
    needs.cpus = cpus;
    if (ranks_that_fit(needs, layout, nodes) >= ranks) return cpus;
  }
  return {};
}

/// The value of --per-node, below the one that was asked for where there is one, else above it, with
/// which so many have room.
std::optional<int> per_node_with_room(int ranks, const RankNeeds& needs, const RankLayout& layout,
                                      const std::vector<NodeRoom>& nodes) {
  if (layout.on_every_node) {
    const auto on = [&needs](const NodeRoom& node) { return ranks_on(node, needs); };
    const int least = on(std::ranges::min(nodes, {}, on));
    return least > 0 && least < layout.per_node ? std::optional(least) : std::nullopt;
  }
  std::optional<int> found;
  for (int each = ranks; each > 0; --each) {
    if (ranks % each != 0 || each == layout.per_node) continue;
    if (ranks_that_fit(needs, {.per_node = each}, nodes) < ranks) continue;
    found = each;
    if (each < layout.per_node) break;
  }
  return found;
}

std::string ranks_have_room(int ranks) {
  return ranks == 1 ? "1 rank has room" : fmt::format("{} ranks have room", ranks);
}

std::string machine_to_add(const RankNeeds& needs) {
  std::string command = "troupe worker";
  for (const auto& [key, value] : needs.labels)
    command += fmt::format(" --label {}", shell_word(fmt::format("{}={}", key, value)));
  return fmt::format("add a machine with `{}`", command);
}

}  // namespace

std::string way_to_room(int ranks, const RankNeeds& needs, const RankLayout& layout,
                        const std::vector<NodeRoom>& nodes) {
  if (nodes.empty()) return needs.labels.empty() ? "" : machine_to_add(needs);
  const int fitting = ranks_that_fit(needs, layout, nodes);
  if (fitting >= ranks) return {};
  std::vector<std::string> ways;
  if (fitting > 0) ways.push_back(fmt::format("-n {}", fitting));
  if (layout.per_node > 0) {
    if (const auto each = per_node_with_room(ranks, needs, layout, nodes)) {
      ways.push_back(layout.on_every_node
                         ? fmt::format("--per-node {}", *each)
                         : fmt::format("--per-node {} so that {}", *each, ranks_have_room(ranks)));
    }
  }
  if (const auto cpus = cpus_with_room(ranks, needs, layout, nodes))
    ways.push_back(fmt::format("--cpus {:g} so that {}", *cpus, ranks_have_room(ranks)));
  if (layout.per_node == 0 && ranks_that_fit(needs, {}, nodes) >= ranks)
    ways.emplace_back("another --strategy");
  if (ways.empty()) return machine_to_add(needs);
  return fmt::format("give {}, or {}", fmt::join(ways, ", or "), machine_to_add(needs));
}

}  // namespace troupe::launch
