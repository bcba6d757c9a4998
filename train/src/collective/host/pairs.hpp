#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/host/channel.hpp"
#include "collective/host/memory/local_group.hpp"

namespace troupe::train {

/// The channels between this rank and the others, each made by its two ranks when they first need
/// it. Owned by the communicator, used by its calling thread.
class Pairs {
 public:
  /// `address` to listen on for ranks of other nodes. `stop` throws to leave a wait.
  Pairs(Patience& patience, LocalGroup& group, std::string name, std::string address,
        std::function<void()> stop);

  /// The channel to a rank, which calls this at the same time.
  Channel& with(int rank);
  /// Makes those that are missing to all ranks. A collective: every rank makes its own in one
  /// order, so that no two wait for each other in a circle.
  void connect_all();
  /// This rank's part of an all-to-all over all ranks: in rounds, each with another distance
  /// (pairwise exchange).
  void all_to_all(const std::byte* in, std::byte* out, std::size_t part_bytes);

  /// One message: both ranks tell what they are about to do, and the data goes if that fits.
  void send(const Announcement& what, std::span<const std::byte> data);
  void recv(const Announcement& what, std::span<std::byte> data);

 private:
  std::unique_ptr<Channel> connect(int rank);
  void agree(Channel& channel, const Announcement& what);

  Patience& patience_;
  LocalGroup& group_;
  const std::string name_;
  const std::string address_;
  const std::function<void()> stop_;
  const std::vector<int> node_ranks_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by rank
};

}  // namespace troupe::train
