#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "objects/object.hpp"

namespace troupe::runtime {

/// What a rank asks of the rendezvous of its gang. A value; the fields that an action does not name
/// are ignored.
struct RendezvousRequest {
  enum class Action : std::uint8_t {
    Get,      ///< the value of `key`, once it is there, within `timeout`
    Set,      ///< `key` to `value`
    Advance,  ///< the counter `key` to `count`, with `value` as its note
    Await,    ///< the counter `key` to be at `count` or beyond, within `timeout`
    Forget,   ///< all that begins with `key`
  };
  Action action = Action::Get;
  std::string key;
  std::string value = {};
  std::uint64_t count = 0;
  std::chrono::milliseconds timeout{0};
};

/// What rank 0's process keeps for the rendezvous of its gang: keys written once, counters that
/// only grow, and who waits for them. Who waits has the deadline; after it the wait is dropped here
/// too. Belongs to the loop.
class RendezvousTable {
 public:
  using Answer = std::function<void(Outcome)>;
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kLargestValue = 64 << 10;
  static constexpr std::size_t kMostKeys = 100'000;  ///< of one gang, counters too

  /// The answer may be given within, or later, or never: where the time is over. A wait that is
  /// dropped after its deadline is answered with TimedOut.
  void ask(GangId gang, RendezvousRequest request, Answer answer, TimePoint now);
  /// Of a gang, counters too. For tests.
  std::size_t keys(GangId gang) const;
  std::size_t waiting(GangId gang) const;

 private:
  struct Wait {
    std::uint64_t count = 0;  // of a counter
    TimePoint until;
    Answer answer;
  };
  struct Slot {
    bool is_set = false;
    std::string value;
    std::uint64_t count = 0;  // of a counter
    std::vector<Wait> waiting;
  };
  using Slots = std::map<std::string, Slot, std::less<>>;

  static void set(Slot& slot, RendezvousRequest request, const Answer& answer);
  static void get(Slot& slot, const RendezvousRequest& request, Answer answer, TimePoint now);
  static void advance(Slot& slot, RendezvousRequest request, const Answer& answer);
  static void await(Slot& slot, const RendezvousRequest& request, Answer answer, TimePoint now);
  static void forget(Slots& slots, const std::string& prefix);
  static void add_wait(Slot& slot, const RendezvousRequest& request, Answer answer, TimePoint now);

  std::unordered_map<GangId, Slots> gangs_;
};

}  // namespace troupe::runtime
