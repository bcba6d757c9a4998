#pragma once

#include <chrono>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/needs.hpp"
#include "plan/plan.hpp"
#include "plan/room.hpp"

namespace troupe::launch {

/// What one look at the cluster shows to a gang that runs.
struct RoomSeen {
  int ranks = 0;             ///< that the gang could have, those that it has included
  bool others_wait = false;  ///< a request waits: what is free may be what it needs
};

/// From the cluster's status (Cluster::status_json): a gang that is formed anew has what is free and
/// what its own ranks hold. Pure.
RoomSeen room_seen(const nlohmann::json& status, const RankNeeds& needs, const RankLayout& layout,
                   const std::vector<RankPlace>& running);

/// For how long there has been room for more ranks than a gang has, as its driver sees it: one look
/// after the other. Pure.
///
///   [no room] --a look: room for more ranks, and nobody waits--> [room]
///       ^--------a look: no room for more, or others wait; no answer--------|
///
/// 1. has_room() is true from a look that shows room for more than `running` ranks, while no other
///    request waits, up to the next look that does not.
/// 2. lasted() is the time between the first and the last of such looks that follow each other. The
///    time before the first does not count.
/// 3. Two looks lie at most `longest_step` apart, as lasted() counts: what was between them nobody
///    saw, if this process stood still.
/// 4. ranks() is how many each of these looks had room for, at most `most`.
class RoomWatch {
 public:
  using Duration = std::chrono::steady_clock::duration;

  RoomWatch(int running, int most, Duration longest_step)
      : running_(running), most_(most), longest_step_(longest_step) {}

  /// `passed`: since the look before.
  void see(const RoomSeen& seen, Duration passed);
  /// The head did not answer.
  void miss() { ranks_ = 0; }

  bool has_room() const { return ranks_ > 0; }
  int ranks() const { return ranks_; }
  Duration lasted() const { return has_room() ? lasted_ : Duration::zero(); }

 private:
  int running_;
  int most_;
  Duration longest_step_;
  int ranks_ = 0;  // 0: there is no room for more
  Duration lasted_{};
};

}  // namespace troupe::launch
