#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/call.hpp"
#include "collective/host/network/socket.hpp"

namespace troupe::train {

/// The first ranks of the gang's nodes, each connected to the next (node k sends to k + 1, modulo
/// the nodes) over TCP. Positions here are node ranks. Not used by the other ranks of a node.
///
/// All-reduce: reduce-scatter, then all-gather, each in nodes - 1 steps (Patarasuk and Yuan, 2009):
/// every byte crosses each link about twice, whatever the number of nodes.
///
/// Connections prove, by HMAC-SHA256 over both sides' nonces, that they know a key that only the
/// gang's rendezvous holds. Data is neither encrypted nor signed.
class Ring {
 public:
  /// A collective over the nodes' first ranks: listens, publishes the addresses, connects to the
  /// next node and accepts the one before. `stop` throws to leave a wait.
  Ring(Patience& patience, const std::string& name, const std::string& address,
       std::function<void()> stop);

  int position() const { return position_; }
  int nodes() const { return nodes_; }

  /// Compares the call with the node before. Throws std::invalid_argument naming both.
  void check_announcement(const Announcement& what);

  /// In place over the nodes' data. Average divides by `ranks`, the number of summands behind all
  /// the data; where a partial sum is too large for `type`, the average is not finite.
  void all_reduce(std::byte* data, std::size_t count, DataType type, ReduceOp op, int ranks);
  /// From node `root` around the ring, in place.
  void broadcast(std::span<std::byte> data, int root);
  /// `blocks[k]` is node k's part, filled in by it; afterwards all are filled. They may differ in
  /// size.
  void all_gather(const std::vector<std::span<std::byte>>& blocks);

 private:
  void exchange(std::span<const std::byte> out, std::span<std::byte> in);

  Patience& patience_;
  std::function<void()> stop_;
  const int position_;
  const int nodes_;
  int next_rank_ = 0;  // in the gang, of the next node's first rank
  int previous_rank_ = 0;
  Socket next_;
  Socket previous_;
  std::vector<std::byte> received_;
};

}  // namespace troupe::train
