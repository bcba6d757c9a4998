#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/call.hpp"
#include "collective/host/memory/shared_memory.hpp"

namespace troupe::train {

/// The ranks of one gang on one node, in lock-step through shared memory. Ranks here are local
/// ranks.
///
/// Each rank has a step counter that only it writes. A phase of a collective is: write what the
/// others are to read, arrive(), wait until the counters of those one depends on have come as far.
/// All ranks arrive equally often, since a collective's phases follow from its announcement, which
/// the first phase compares.
///
/// Buffers: `post(r, n)`: two per rank, by the parity of the call, small; the announcement stands
/// in them. `stage(r, c)`: two per rank, and `result(c)`: two, by the parity of the chunk c
/// (counted over all calls). A rank may write chunk c where c - 2 was once all have arrived for c -
/// 1, which they do after they are done with c - 2.
///
/// Waiting: spins for a while that adapts to whether spinning helped lately (more processes than
/// cores are normal), then sleeps on the counter in slices, between which it looks for a broken
/// gang, a peer that is dead (its pidfd) or has closed its communicator, an abort and the deadline.
/// It does not yield: on busy cores a thread that yields waits for everybody else's time slice,
/// where one that is woken goes first (measured: 8 ranks on two busy cores, 80 us a barrier against
/// 6 ms).
class LocalGroup {
 public:
  static constexpr std::size_t kPostBytes = 8192;

  /// A collective over the node's ranks: returns when all have come.
  LocalGroup(Patience& patience, const std::string& name, std::size_t chunk_bytes);
  ~LocalGroup();
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int world_rank(int local) const { return world_ranks_[static_cast<std::size_t>(local)]; }

  /// What goes into a post beside the announcement: which registered buffer the call is on.
  struct Place {
    std::int32_t region = -1;
    std::uint64_t offset = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Post {
    Announcement what;
    Place place;
    alignas(64) std::byte data[kPostBytes];
  };
  Post& post(int local, std::uint64_t call) const;
  std::byte* stage(int local, std::uint64_t chunk) const;
  std::byte* result(std::uint64_t chunk) const;
  std::size_t chunk_bytes() const { return chunk_bytes_; }

  /// Writes the announcement and the place into the rank's post of this call.
  void announce(const Announcement& what, Place place);
  /// After wait_all: throws std::invalid_argument if a rank announced something else. -> whether
  /// all are at `place`.
  bool check_announcements(const Announcement& what, Place place) const;

  /// -> the step that this rank has now come to.
  std::uint32_t arrive();
  std::uint32_t step() const { return step_; }
  void wait_all(std::uint32_t step);
  void wait_for(int local, std::uint32_t step);

  /// Whether a rank's process, or its communicator, is over, and GangBroken that says so.
  bool has_ended(int local) const;
  [[noreturn]] void throw_ended(int local) const;

  /// True for the first rank that asks for this call of the communicator, or a later one.
  bool claim_notice(std::uint64_t call);

  /// This rank steps no more, which those say that wait for a step to which it has not come. As its
  /// destructor, which says that the communicator was closed.
  void leave(std::string_view why);
  /// Any thread. Wakes everybody; the first reason stays.
  void abort(std::string_view reason);
  std::optional<std::string> aborted() const;

 private:
  struct Slot;
  struct Header;
  bool reached(int local, std::uint32_t step) const;
  void sleep_until(int local, std::uint32_t step);
  void check_peers(std::uint32_t step);
  std::vector<int> missing(std::uint32_t step) const;
  void meet();
  Header& header() const;
  Slot& slot(int local) const;

  Patience& patience_;
  const int rank_;
  const int size_;
  const std::size_t chunk_bytes_;
  std::vector<int> world_ranks_;
  std::unique_ptr<SharedMemory> memory_;
  std::vector<int> pidfds_;  // by local rank; -1 for one's own process
  std::uint32_t step_ = 0;
  std::uint32_t spins_;
  std::uint32_t waits_ = 0;  // that did not find the step reached at once
};

}  // namespace troupe::train
