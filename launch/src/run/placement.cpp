#include "run/placement.hpp"

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>
#include <troupe/with.hpp>

#include "plan/needs.hpp"
#include "plan/room.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};

double amount(const json& resources, const char* name) {
  return resources.contains(name) ? resources.at(name).get<double>() : 0;
}

RankNeeds needs_of(const LaunchOptions& options) {
  return {.cpus = options.cpus < 0 ? 1 : options.cpus,
          .gpus = options.gpus,
          .memory_gb = options.memory_gb,
          .labels = options.labels};
}

/// Of nodes that have the labels: all that they have ("total"), or what is "free" of those that are
/// not kept for others.
std::vector<NodeRoom> nodes_for(const LaunchOptions& options, const Cluster& cluster,
                                const char* which) {
  const auto status = json::parse(cluster.status_json());
  const bool is_free = std::string_view(which) == "free";
  const auto needs = needs_of(options);
  std::vector<NodeRoom> nodes;
  for (const auto& node : status.at("nodes")) {
    if (is_free && node.at("state") != "ready") continue;
    const auto& resources = node.at(which);
    NodeRoom room{.cpus = amount(resources, "cpu"),
                  .gpus = amount(resources, "gpu"),
                  .memory_gb = amount(resources, "memory")};
    for (const auto& [key, value] : node.at("labels").items())
      room.labels.emplace_back(key, value.get<std::string>());
    if (has_labels(room, needs)) nodes.push_back(std::move(room));
  }
  return nodes;
}

/// Ranks that the cluster has room for: now (`which` "free"), or where nothing else ran ("total").
int room(const LaunchOptions& options, const Cluster& cluster, const char* which) {
  return ranks_that_fit(needs_of(options), {options.per_node, options.strategy},
                        nodes_for(options, cluster, which));
}

int every_gpu(const LaunchOptions& options, const Cluster& cluster) {
  double gpus = 0;
  for (const auto& node : nodes_for(options, cluster, "total")) gpus += node.gpus;
  if (gpus < 1) {
    raise({.kind = Failure::Kind::Impossible,
           .message = fmt::format("-n gpus asks for a rank on each GPU, and {}: give a number of "
                                  "ranks, or start nodes that have GPUs (`troupe status` shows "
                                  "what there is)",
                                  options.labels.empty()
                                      ? "the cluster has none"
                                      : "no node with these labels (--label) has any")});
  }
  return static_cast<int>(gpus);
}

/// How many ranks to ask for at first. An elastic size: as many as have room now.
int ranks_to_ask_for(const LaunchOptions& options, const Cluster& cluster) {
  if (options.size.every_gpu) return every_gpu(options, cluster);
  if (options.per_node > 0 && !options.size_given) {
    // Where there is none, the head says why.
    const auto nodes = nodes_for(options, cluster, "total").size();
    return options.per_node * static_cast<int>(std::max<std::size_t>(1, nodes));
  }
  if (!options.size.is_elastic()) return options.size.most;
  const int now = room(options, cluster, "free");
  const int each = std::max(1, options.per_node);
  const int least = (options.size.least + each - 1) / each * each;
  const int most = options.size.most / each * each;
  // None between them is a multiple of --per-node: the caller refuses that.
  return least > most ? options.size.least : std::clamp(now, least, most);
}

/// Until there is room for as many ranks as the gang had that has just ended, or as the nodes that
/// are left hold: what its processes had is free once they are gone.
void wait_for_room(const LaunchOptions& options, const Cluster& cluster, int before,
                   const std::function<bool()>& give_up) {
  constexpr std::chrono::seconds kEnding{5};  // others may have taken it
  const auto begun = Clock::now();
  while (!give_up() && Clock::now() - begun < kEnding) {
    const int there = std::min(before, room(options, cluster, "total"));
    if (room(options, cluster, "free") >= there) return;
    std::this_thread::sleep_for(kLook);
  }
}

PendingGang<RankHost> request(const LaunchOptions& options, int hosts, int per_host) {
  const auto strategy = options.per_node > 0 ? Strategy::StrictSpread : options.strategy;
  return detail::place_ranks<RankHost>({.size = hosts, .strategy = strategy},
                                       request_of_host(needs_of(options), per_host), false);
}

/// Behind why the head can never place so many ranks: what to do. Empty where that is not known.
std::string way_to_room(const LaunchOptions& options, const Cluster& cluster, int ranks) try {
  const RankLayout layout{.per_node = options.per_node,
                          .strategy = options.strategy,
                          .on_every_node = options.per_node > 0 && !options.size_given};
  const auto way =
      way_to_room(ranks, needs_of(options), layout, nodes_for(options, cluster, "total"));
  return way.empty() ? way : ": " + way;
} catch (const Error&) {
  return {};  // the head is gone by now
}

}  // namespace

PlacedHosts place_hosts(const LaunchOptions& options, const Cluster& cluster, int before,
                        const std::function<bool()>& give_up) {
  constexpr std::chrono::seconds kTry{2};  // between looks whether it has to be smaller
  const int per_host = std::max(1, options.per_node);
  if (options.size.is_elastic()) wait_for_room(options, cluster, before, give_up);
  while (!give_up()) {
    const int ranks = ranks_to_ask_for(options, cluster);
    if (ranks % per_host != 0) {
      refuse(
          fmt::format("{} ranks cannot be dealt out as {} on each node (--per-node): "
                      "give a multiple of {}",
                      ranks, per_host, per_host));
    }
    auto pending = request(options, ranks / per_host, per_host);
    auto looked = Clock::now();
    while (!pending.wait_for(kLook)) {
      if (give_up()) return {};
      if (!options.size.is_elastic() || Clock::now() - looked < kTry) continue;
      looked = Clock::now();
      // Others were faster. A gang that is as small as may be keeps its place in the queue.
      if (ranks_to_ask_for(options, cluster) < ranks) break;
    }
    if (!pending.wait_for(std::chrono::milliseconds(0))) continue;
    try {
      return {pending.get(), per_host};
    } catch (const Impossible& why) {
      raise({.kind = Failure::Kind::Impossible,
             .message = why.what() + way_to_room(options, cluster, ranks)});
    }
  }
  return {};
}

std::map<std::uint32_t, std::string> node_names(const Cluster& cluster) {
  const auto status = json::parse(cluster.status_json());
  std::map<std::uint32_t, std::string> names;
  for (const auto& node : status.at("nodes"))
    names.emplace(node.at("node").get<std::uint32_t>(), node.at("name").get<std::string>());
  return names;
}

}  // namespace troupe::launch
