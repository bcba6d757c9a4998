#include "collective/host/network/ring_connect.hpp"

#include <fmt/format.h>

#include "collective/host/network/introducer.hpp"

namespace troupe::train {

/// In turns: an attempt to reach the next node, then a look at who wants to come in. A node waits
/// for no other one's introduction while its own neighbour waits for its, because both are awaited
/// with a limit and the one that connects is always the first to send. Even positions connect
/// before they accept and odd ones after, so that of two neighbours one is always listening; an odd
/// ring has one pair of connecting neighbours, whose chain is resolved by the node after it.
RingEnds connect_ring(Patience& patience, const std::string& name, const std::string& address,
                      Neighbours neighbours, const std::function<void()>& stop) {
  auto& gang = patience.gang();
  const auto key = [&](int rank) { return fmt::format("{}/ring/{}", name, rank); };
  const auto listener = listen_on(address.empty() ? gang.host() : address);
  gang.rendezvous().set(key(gang.rank()), place_of(listener));
  Introducer introducer(patience, gang_secret(patience, name), stop);
  RingEnds ends;
  const bool connect_first = gang.node_rank() % 2 == 0;
  if (connect_first) ends.next = introducer.reach(key(neighbours.next_rank), neighbours.next_rank);
  ends.previous = introducer.receive(listener, key(gang.rank()), neighbours.previous_rank);
  if (!connect_first) ends.next = introducer.reach(key(neighbours.next_rank), neighbours.next_rank);
  return ends;
}

}  // namespace troupe::train
