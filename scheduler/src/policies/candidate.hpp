#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/need.hpp>

#include "tables/capacity.hpp"
#include "tables/light_load.hpp"

namespace troupe::scheduler {

/// What a policy may look at: a node as it is now, and as it would be with nothing on it.
struct Candidate {
  NodeId node{};
  const std::string* name = nullptr;
  const Labels* labels = nullptr;
  const Capacity* free = nullptr;
  const Capacity* idle = nullptr;
  LightLoad light = {};
};

/// A number of processes that each need the same. One is a request of its own, several are the
/// ranks of a gang.
struct Ask {
  const Need& each;
  std::size_t count = 1;
  Strategy strategy = Strategy::Pack;
};

/// One node per process; the processes of one node follow each other.
struct Chosen {
  std::vector<NodeId> nodes;
};
/// The nodes could hold it, but not with what is free now.
struct Waits {
  std::string because;
};
/// The nodes could not hold it with nothing else on them.
struct Impossible {
  std::string because;
};
using Placement = std::variant<Chosen, Waits, Impossible>;

/// "'a' (node 2)"
std::string to_string(const Candidate& candidate);

/// Room for a need of nothing.
inline constexpr std::size_t kCountless = 1'000'000;

/// How many processes a node has room for; only where it has any.
struct Room {
  const Candidate* candidate = nullptr;
  std::size_t slots = 0;
};
/// With what is free now, in the order of the candidates.
std::vector<Room> rooms_now(const Ask& ask, std::span<const Candidate> candidates);
/// With nothing else on the nodes.
std::vector<Room> rooms_idle(const Ask& ask, std::span<const Candidate> candidates);
std::size_t total_slots(std::span<const Room> rooms);

/// What a gang says that finds room for some of its ranks, or a single process that finds none.
Waits waits_for_room(const Ask& ask, std::span<const Candidate> candidates);

/// Of a gang that may be on any number of nodes, with what they have room for now: why they cannot
/// hold it together, now or ever; nullopt where they can.
std::optional<Placement> lack_of_room(const Ask& ask, std::span<const Candidate> candidates,
                                      std::span<const Room> rooms);

}  // namespace troupe::scheduler
