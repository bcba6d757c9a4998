#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <troupe/train/communicator.hpp>

#include "collective/background_reductions.hpp"
#include "collective/call.hpp"
#include "collective/nccl/handles.hpp"

namespace troupe::train {

/// Communicator over NCCL, on a stream of its own. Lives in one rank's process; one device.
///
/// NCCL's communicator is non-blocking (blocking = 0): every call returns at once, and this thread
/// polls the state, the completion event, the gang's broken word and the deadline. When one of the
/// latter two ends a call, the communicator is aborted by this thread, which is then the only one
/// inside NCCL.
class NcclCommunicator final : public Communicator, public BackgroundReductions {
 public:
  NcclCommunicator(GangContext& gang, NcclOptions options);
  /// One that was split off.
  NcclCommunicator(std::unique_ptr<GangContext> own_gang, NcclOptions options, int device,
                   NcclHandle comm);
  ~NcclCommunicator() override;

  int rank() const override { return gang_.rank(); }
  int size() const override { return gang_.size(); }
  std::string_view name() const override { return "nccl"; }
  void barrier() override;
  void begin_average(void* data, std::size_t count, DataType type, void* filled) override;
  void complete() override;
  void give_up(std::string_view why) noexcept override;
  /// Takes effect in this process's running or next call; the other ranks see the connection end.
  void abort(std::string_view reason) override;

 private:
  void do_all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) override;
  void do_broadcast(void* data, std::size_t count, DataType type, int root) override;
  void do_all_gather(const void* in, void* out, std::size_t count, DataType type) override;
  void do_reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                         ReduceOp op) override;

  void do_all_gather_parts(const void* in, void* out, std::span<const std::size_t> counts,
                           DataType type) override;
  void do_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                 int root) override;
  void do_gather(const void* in, void* out, std::size_t count, DataType type, int root) override;
  void do_scatter(const void* in, void* out, std::size_t count, DataType type, int root) override;
  void do_all_to_all(const void* in, void* out, std::size_t count, DataType type) override;
  void do_send(const void* data, std::size_t count, DataType type, int to) override;
  void do_recv(void* data, std::size_t count, DataType type, int from) override;
  std::unique_ptr<Communicator> do_split(int color, int key) override;

  /// Makes this rank's part by `body`, whose exception is told to the other ranks.
  template <class Body>
  void start(Body body);
  void choose_device();
  void prepare_device();
  void connect();
  /// Enqueues by `enqueue`, waits until its result is complete.
  template <class Enqueue>
  void run(Announcement what, Enqueue enqueue);
  /// Likewise for a message, which only two ranks count.
  template <class Enqueue>
  void run_message(Announcement what, Enqueue enqueue);
  template <class Enqueue>
  void attempt(const Announcement& what, Enqueue enqueue);
  /// Puts what `enqueue` calls on the stream, behind what comes before `filled`; `done` comes after
  /// it.
  template <class Enqueue>
  void enqueue_after(cudaEvent_t filled, Enqueue enqueue, cudaEvent_t done);
  /// Runs `body`, whose exception ends the communicator.
  template <class Body>
  void ending_with_errors_of(Body body);
  void wait_for_begun();
  void wait_enqueued(ncclResult_t result) { wait_for(comm_.get(), result); }
  void wait_for(const ncclComm_t& comm, ncclResult_t result);
  void wait_complete(cudaEvent_t done);
  void check_leaving();
  /// Whether the other ranks have come to their destructors as well.
  bool finalized();
  /// As HostCommunicator::leave.
  void leave(Failure why);
  void end_with(std::string reason);

  const int exceptions_ = std::uncaught_exceptions();  // when it was made
  Entrance entrance_;
  const std::unique_ptr<GangContext> own_gang_;
  GangContext& gang_;
  const NcclOptions options_;
  Patience patience_;
  int device_ = 0;
  Stream stream_;
  Event inputs_ready_;
  Event complete_;
  DeviceMemory<std::int32_t> token_;  // for barrier()
  NcclHandle comm_;                   // after these, since NCCL's work on them ends with it
  std::uint64_t calls_ = 1;
  std::map<int, std::uint64_t> messages_;  // by the other rank
  struct Begun {
    Announcement what;
    Event done;
  };
  std::deque<Begun> begun_;  // averages in the background, in their order
  std::vector<Event> free_;  // events of earlier ones
  int splits_ = 0;
  std::exception_ptr failure_;
  std::atomic<int> abort_state_{0};  // 0: none, 1: being written, 2: abort_reason_ can be read
  std::string abort_reason_;
  std::shared_ptr<void> listening_;  // for calls of this rank that fail
};

}  // namespace troupe::train
