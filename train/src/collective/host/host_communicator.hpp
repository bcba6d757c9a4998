#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/train/communicator.hpp>

#include "collective/call.hpp"
#include "collective/host/memory/local_group.hpp"
#include "collective/host/memory/regions.hpp"
#include "collective/host/network/ring.hpp"
#include "collective/host/pairs.hpp"

namespace troupe::train {

/// Communicator over main memory. Lives in one rank's process.
///
/// Within a node, by size of an all-reduce: up to LocalGroup::kPostBytes everybody reads what
/// everybody posted (one phase); registered buffers are reduced in place, each rank a slice of all
/// of them (two phases); the rest goes through the stages chunk by chunk: copy in, each rank
/// reduces a slice into the result, copy out; the next chunk is copied in while the slower ranks
/// still reduce this one. Across nodes each chunk's result goes around the ring in between.
/// Messages, and an all-to-all across nodes, go through channels between two ranks, which leave the
/// node's steps alone.
class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(GangContext& gang, HostOptions options);
  /// One that was split off: of a gang that is its own, with options that were checked.
  HostCommunicator(std::unique_ptr<GangContext> own_gang, HostOptions options);
  ~HostCommunicator() override;

  int rank() const override { return gang_.rank(); }
  int size() const override { return gang_.size(); }
  std::string_view name() const override { return "host"; }
  void barrier() override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  void abort(std::string_view reason) override;

 private:
  void do_all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) override;
  void do_broadcast(void* data, std::size_t count, DataType type, int root) override;
  void do_all_gather(const void* in, void* out, std::size_t count, DataType type) override;
  void do_all_gather_parts(const void* in, void* out, std::span<const std::size_t> counts,
                           DataType type) override;
  void do_reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                         ReduceOp op) override;

  void do_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                 int root) override;
  void do_gather(const void* in, void* out, std::size_t count, DataType type, int root) override;
  void do_scatter(const void* in, void* out, std::size_t count, DataType type, int root) override;
  void do_all_to_all(const void* in, void* out, std::size_t count, DataType type) override;
  void do_send(const void* data, std::size_t count, DataType type, int to) override;
  void do_recv(void* data, std::size_t count, DataType type, int from) override;
  std::unique_ptr<Communicator> do_split(int color, int key) override;

  void start();
  void check_aborted();
  /// This rank takes part in nothing more, which the others are told where they wait for it.
  void leave(Failure why);
  /// Runs one collective, or one message: refuses if an earlier one failed, and ends the
  /// communicator for everybody if this one does.
  template <class Call>
  void run(Announcement what, Call call);
  template <class Call>
  void run_message(Announcement what, Call call);
  template <class Call>
  void attempt(const Announcement& what, Call call);
  void fail();
  void end_connections(const std::string& why);
  /// The first phase: announces, arrives, waits for all, compares. -> whether all ranks are at the
  /// same place.
  bool meet(LocalGroup::Place place = {});
  /// The phase after the leader's work on the ring: the others wait for the leader only.
  template <class OnRing>
  void leader_phase(OnRing on_ring);

  void reduce_posts(void* data, std::size_t count, DataType type, ReduceOp op);
  void reduce_in_place(LocalGroup::Place place, std::size_t count, DataType type, ReduceOp op);
  /// `out`: nullptr where this rank does not want the result.
  void reduce_staged(const std::byte* in, std::byte* out, std::size_t count, DataType type,
                     ReduceOp op);
  void reduce_slice(std::uint64_t chunk, std::size_t count, DataType type, ReduceOp op);
  void reduce_over_ring(std::uint64_t chunk, std::size_t count, DataType type, ReduceOp op);
  /// What the node's ranks have copied in, each from `offset` bytes on. Valid until the next call.
  std::span<const void* const> staged(std::uint64_t chunk, std::size_t offset);
  /// The bytes of each rank in what is gathered, and where they begin there.
  struct Parts {
    std::vector<std::size_t> bytes;
    std::vector<std::size_t> offsets;
    std::size_t largest = 0;
  };
  Parts equal_parts(std::size_t bytes) const;
  /// `out`: nullptr where this rank does not want it.
  void gather_parts(const std::byte* in, std::byte* out, const Parts& parts);
  void gather_chunk(const std::byte* in, std::byte* out, const Parts& parts, std::size_t at,
                    std::size_t step);
  void scatter_chunk(const std::byte* in, std::byte* out, std::size_t stride, std::size_t count,
                     DataType type, ReduceOp op);
  void gather_over_ring(std::uint64_t chunk, const std::vector<std::size_t>& lengths);
  /// Whose stage of this node has what `root` sends: its own, or where it is elsewhere the
  /// leader's.
  int source_of(int root) const;
  void broadcast_over_ring(std::uint64_t chunk, std::size_t bytes, int root);
  void deal_chunk(const std::byte* in, std::byte* out, std::size_t stride, std::size_t bytes);
  bool is_leader() const { return group_->rank() == 0; }

  Entrance entrance_;
  const std::unique_ptr<GangContext> own_gang_;
  GangContext& gang_;
  const HostOptions options_;
  Patience patience_;
  std::unique_ptr<LocalGroup> group_;
  std::unique_ptr<Ring> ring_;  // of the node's first rank, where there are several nodes
  const bool has_ring_;
  std::vector<std::vector<int>> ranks_of_node_;
  std::unique_ptr<Pairs> pairs_;
  Regions regions_;
  std::uint64_t calls_ = 1;   // call 0 is the start
  std::uint64_t chunks_ = 0;  // counted over all calls: see LocalGroup
  int splits_ = 0;
  std::exception_ptr failure_;
  std::vector<const void*> inputs_;  // of a reduction, kept to save the allocation
  const int exceptions_;             // in flight when it was made
  std::shared_ptr<void> listening_;  // for calls of this rank that fail
};

template <class Call>
void HostCommunicator::attempt(const Announcement& what, Call call) {
  patience_.begin(what);
  try {
    if (patience_.gang_is_broken()) patience_.throw_broken();
    check_aborted();  // a call to which every rank comes waits for none, and would not see it
    call();
    patience_.end();
  } catch (...) {
    fail();
    throw;
  }
}

template <class Call>
void HostCommunicator::run(Announcement what, Call call) {
  const auto inside = entrance_.enter(rank(), what);
  if (failure_) std::rethrow_exception(failure_);
  what.sequence = calls_++;
  attempt(what, call);
}

}  // namespace troupe::train
