#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <troupe/train/communicator.hpp>

#include "collective/call.hpp"
#include "collective/local_group.hpp"
#include "collective/regions.hpp"
#include "collective/ring.hpp"

namespace troupe::train {

/// Communicator over main memory. Lives in one rank's process.
///
/// Within a node, by size of an all-reduce: up to LocalGroup::kPostBytes everybody reads what everybody posted (one
/// phase); registered buffers are reduced in place, each rank a slice of all of them (two phases); the rest goes through
/// the stages chunk by chunk: copy in, each rank reduces a slice into the result, copy out; the next chunk is copied in
/// while the slower ranks still reduce this one. Across nodes each chunk's result goes around the ring in between.
class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(GangContext& gang, HostOptions options);
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
  void do_reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override;

  /// Runs one call: refuses if an earlier one failed, and ends the communicator for everybody if this one does.
  template <class Call>
  void run(Announcement what, Call call);
  /// The first phase: announces, arrives, waits for all, compares. -> whether all ranks are at the same place.
  bool meet(LocalGroup::Place place = {});
  /// The phase after the leader's work on the ring: the others wait for the leader only.
  template <class OnRing>
  void leader_phase(OnRing on_ring);

  void reduce_posts(void* data, std::size_t count, DataType type, ReduceOp op);
  void reduce_in_place(LocalGroup::Place place, std::size_t count, DataType type, ReduceOp op);
  void reduce_staged(std::byte* data, std::size_t count, DataType type, ReduceOp op);
  void reduce_slice(std::uint64_t chunk, std::size_t count, DataType type, ReduceOp op);
  void gather_chunk(const std::byte* in, std::byte* out, std::size_t stride, std::size_t bytes);
  void scatter_chunk(const std::byte* in, std::byte* out, std::size_t stride, std::size_t count, DataType type,
                     ReduceOp op);
  void gather_over_ring(std::uint64_t chunk, std::size_t bytes);
  bool is_leader() const { return group_->rank() == 0; }

  GangContext& gang_;
  const HostOptions options_;
  Patience patience_;
  std::unique_ptr<LocalGroup> group_;
  std::unique_ptr<Ring> ring_;  // of the node's first rank, where there are several nodes
  const bool has_ring_;
  std::vector<std::vector<int>> ranks_of_node_;
  Regions regions_;
  std::uint64_t calls_ = 1;   // call 0 is the start
  std::uint64_t chunks_ = 0;  // counted over all calls: see LocalGroup
  std::exception_ptr failure_;
  std::vector<const void*> inputs_;  // of a reduction, kept to save the allocation
};

}  // namespace troupe::train
