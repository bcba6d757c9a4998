#include "run/placement.hpp"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>
#include <troupe/with.hpp>

#include "plan/needs.hpp"
#include "plan/room.hpp"
#include "plan/status_nodes.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};

RankNeeds needs_of(const LaunchOptions& options) {
  return {.cpus = options.cpus < 0 ? 1 : options.cpus,
          .gpus = options.gpus,
          .memory_gb = options.memory_gb,
          .labels = options.labels};
}

/// The caller does not want the gang any more.
struct GaveUp {};

/// The cluster's status, of a head that may be silent for a while: whether it is gone its connection
/// tells (--head-silence).
class StatusOfHead {
 public:
  StatusOfHead(const Cluster& cluster, const PlacingCallbacks& callbacks)
      : cluster_(cluster), callbacks_(callbacks) {}

  /// Throws Disconnected where the head is gone, and GaveUp.
  json get() const {
    for (bool is_said = false;; is_said = true) {
      try {
        return json::parse(cluster_.status_json());
      } catch (const TimedOut& error) {
        if (callbacks_.give_up()) throw GaveUp();
        if (!is_said)
          callbacks_.say(fmt::format("{}: the gang is formed once it does", error.what()));
      }
    }
  }

 private:
  const Cluster& cluster_;
  const PlacingCallbacks& callbacks_;
};

std::vector<NodeRoom> nodes_for(const LaunchOptions& options, const StatusOfHead& head,
                                Share share) {
  return nodes_in(head.get(), needs_of(options), share);
}

/// Ranks that the cluster has room for: now (Free), or where nothing else ran (Total).
int room(const LaunchOptions& options, const StatusOfHead& head, Share share) {
  return ranks_that_fit(needs_of(options), {options.per_node, options.strategy},
                        nodes_for(options, head, share));
}

int every_gpu(const LaunchOptions& options, const StatusOfHead& head) {
  double gpus = 0;
  for (const auto& node : nodes_for(options, head, Share::Total)) gpus += node.gpus;
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
int ranks_to_place(const LaunchOptions& options, const StatusOfHead& head,
                   const SizeBefore& before) {
  if (options.size.every_gpu) return every_gpu(options, head);
  if (options.per_node > 0 && !options.size_given) {
    // Where there is none, the head says why.
    const auto nodes = nodes_for(options, head, Share::Total).size();
    return options.per_node * static_cast<int>(std::max<std::size_t>(1, nodes));
  }
  if (!options.size.is_elastic()) return options.size.most;
  const auto& size = options.size;
  // None between them is a multiple of --per-node: the caller refuses that.
  if (least_ranks(size, options.per_node) > most_ranks(size, options.per_node)) return size.least;
  const int now = room(options, head, Share::Free);
  return ranks_to_ask_for(size, options.per_node, now, before);
}

/// Until there is room for so many ranks, or for as many as the nodes that are left hold: what the
/// processes of the gang before had is free once they are gone.
void wait_for_room(const LaunchOptions& options, const StatusOfHead& head, int ranks,
                   const std::function<bool()>& give_up) {
  constexpr std::chrono::seconds kEnding{5};  // others may have taken it
  const auto begun = Clock::now();
  while (!give_up() && Clock::now() - begun < kEnding) {
    const int there = std::min(ranks, room(options, head, Share::Total));
    if (room(options, head, Share::Free) >= there) return;
    std::this_thread::sleep_for(kLook);
  }
}

PendingGang<RankHost> request(const LaunchOptions& options, int hosts, int per_host) {
  const auto strategy = options.per_node > 0 ? Strategy::StrictSpread : options.strategy;
  return detail::place_ranks<RankHost>({.size = hosts, .strategy = strategy},
                                       request_of_host(needs_of(options), per_host), false);
}

/// Behind why the head can never place so many ranks: what to do. Empty where that is not known.
std::string way_to_room(const LaunchOptions& options, const StatusOfHead& head, int ranks) try {
  const RankLayout layout{.per_node = options.per_node,
                          .strategy = options.strategy,
                          .on_every_node = options.per_node > 0 && !options.size_given};
  const auto way =
      way_to_room(ranks, needs_of(options), layout, nodes_for(options, head, Share::Total));
  return way.empty() ? way : ": " + way;
} catch (const Error&) {
  return {};  // the head is gone by now
}

}  // namespace

PlacedHosts place_hosts(const LaunchOptions& options, const Cluster& cluster,
                        const SizeBefore& before, const PlacingCallbacks& callbacks) try {
  constexpr std::chrono::seconds kTry{2};  // between looks whether it has to be smaller
  constexpr int kMostTries = 3;            // of a size that seems to have room
  const int per_host = std::max(1, options.per_node);
  const bool is_elastic = options.size.is_elastic();
  const auto& give_up = callbacks.give_up;
  const StatusOfHead head(cluster, callbacks);
  if (is_elastic) wait_for_room(options, head, ranks_to_await(before), give_up);
  int most = std::numeric_limits<int>::max();  // once more were not to be had
  int tried = 0, tries = 0;                    // a number of ranks, and how often
  while (!give_up()) {
    const int ranks = std::min(most, ranks_to_place(options, head, before));
    if (std::exchange(tried, ranks) != ranks) tries = 0;
    if (ranks % per_host != 0) {
      refuse(
          fmt::format("{} ranks cannot be dealt out as {} on each node (--per-node): "
                      "give a multiple of {}",
                      ranks, per_host, per_host));
    }
    auto pending = request(options, ranks / per_host, per_host);
    // Parts of GPUs that are free do not always make a whole: there may be less room than it seems.
    const bool can_be_smaller = is_elastic && ranks > least_ranks(options.size, options.per_node);
    auto looked = Clock::now();
    while (!pending.wait_for(kLook)) {
      if (give_up()) return {};
      if (!can_be_smaller || Clock::now() - looked < kTry) continue;
      looked = Clock::now();
      if (own_gang_starts(head.get(), ::getpid())) continue;
      if (++tries == kMostTries) most = ranks_after(ranks, options.size, options.per_node, before);
      // Others were faster. A gang that is as small as may be keeps its place in the queue.
      if (tries == kMostTries || ranks_to_place(options, head, before) < ranks) break;
    }
    if (!pending.wait_for(std::chrono::milliseconds(0))) continue;
    try {
      return {pending.get(), per_host};
    } catch (const Impossible& why) {
      if (can_be_smaller) {
        most = ranks - per_host;
        continue;
      }
      raise({.kind = Failure::Kind::Impossible,
             .message = why.what() + way_to_room(options, head, ranks)});
    }
  }
  return {};
} catch (const GaveUp&) {
  return {};
}

std::optional<RoomSeen> look_for_room(const LaunchOptions& options, const Cluster& cluster,
                                      const GangPlan& running) try {
  return room_seen(json::parse(cluster.status_json()), needs_of(options),
                   {.per_node = options.per_node, .strategy = options.strategy}, running.ranks);
} catch (const Error&) {
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
