#pragma once

#include <optional>
#include <string>

namespace troupe::launch {

/// How many ranks `-n` asks for: "4", "2:8" (as many as fit, within these), or "gpus".
struct GangSize {
  int least = 1;
  int most = 1;
  bool every_gpu =
      false;  ///< one rank for each GPU of the cluster: least and most are not known yet

  bool is_elastic() const { return least != most; }
};

/// What is known of an elastic gang that is formed anew.
struct SizeBefore {
  int ranks = 0;                 ///< that the gang before had; 0: there was none
  std::optional<int> goal = {};  ///< to which it grows, or returns; none: it has failed
};

/// For how many ranks there is to be room before it asks, for a while: all that the gang before held
/// is free by then, though it returns to fewer, so that these are where they pack best. Pure.
int ranks_to_await(const SizeBefore& before);

/// The smallest and the largest elastic size, as so many ranks on each node; `per_node` 0: as they
/// fit. Where no such number lies between them, the smallest is the larger one. Pure.
int least_ranks(const GangSize& size, int per_node);
int most_ranks(const GangSize& size, int per_node);

/// How many ranks an elastic gang asks for where `room` fit now: at most `before.goal`, as others
/// that grow have seen the rest of the room too, and never fewer than the smallest size. Pure.
int ranks_to_ask_for(const GangSize& size, int per_node, int room, const SizeBefore& before);

/// How many it asks for once so many were not to be had, though they seemed to have room: what the
/// gang before had, and below that half of them each time, as each try takes seconds. Pure.
int ranks_after(int ranks, const GangSize& size, int per_node, const SizeBefore& before);

/// Throws Refused, saying what is allowed.
GangSize parse_gang_size(const std::string& text);

}  // namespace troupe::launch
