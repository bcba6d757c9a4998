#pragma once

#include <functional>
#include <string>

#include "collective/call.hpp"
#include "collective/socket.hpp"

namespace troupe::train {

struct RingEnds {
  Socket next;      ///< this node sends here
  Socket previous;  ///< this node receives from here
};
struct Neighbours {
  int next_rank;
  int previous_rank;
};

/// Connects this node to the next one of the ring and accepts the one before, each side proving that it is of this gang
/// and communicator. Strangers that connect are turned away. Throws TimedOut naming the rank that did not come, what
/// `stop` throws, GangBroken.
RingEnds connect_ring(Patience& patience, const std::string& key, const std::string& address, Neighbours neighbours,
                      const std::function<void()>& stop);

}  // namespace troupe::train
