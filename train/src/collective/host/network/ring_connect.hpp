#pragma once

#include <functional>
#include <string>

#include "collective/call.hpp"
#include "collective/host/network/socket.hpp"

namespace troupe::train {

struct RingEnds {
  Socket next;      ///< this node sends here
  Socket previous;  ///< this node receives from here
};
struct Neighbours {
  int next_rank;
  int previous_rank;
};

/// Connects this node to the next one of the ring and accepts the one before: see Introducer.
/// `name` is the communicator's; listens on `address`, or on the gang's host if that is empty.
RingEnds connect_ring(Patience& patience, const std::string& name, const std::string& address,
                      Neighbours neighbours, const std::function<void()>& stop);

}  // namespace troupe::train
