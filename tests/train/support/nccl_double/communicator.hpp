#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nccl.h>

#include "support/nccl_double/mesh.hpp"
#include "support/nccl_double/nccl_double.hpp"
#include "support/nccl_double/stop.hpp"

namespace nccl_double {

/// What a call moves between ranks, and what it then computes of that.
struct Operation {
  std::vector<Transfer> transfers;
  std::function<void()> finish;
  std::shared_ptr<void> scratch;  // what the transfers receive, where that is not the result
};

/// A rank's part of a communicator:
///
///   begin(job)  -> in progress -> ready -> begin(job) ...
///   any of them -> failed, for good
///
/// Jobs (to connect, to enqueue, to split, to finalize) run on a thread of their own, one at a
/// time, and operations on the threads of their streams.
class Comm : public std::enable_shared_from_this<Comm> {
 public:
  Comm(std::uint64_t name, int rank, int size, int device);

  int rank() const { return rank_; }
  int size() const { return size_; }

  ncclResult_t begin_init();
  ncclResult_t begin_operations(std::vector<Operation> operations, cudaStream_t stream);
  ncclResult_t begin_split(int color, int key, ncclComm_t* part);
  ncclResult_t begin_finalize();

  ncclResult_t state() const { return state_; }
  bool is_finalized() const { return finalized_; }
  const char* last_error() const { return last_error_; }
  /// `text` is what last_error() is from now on. -> result
  ncclResult_t refuse(ncclResult_t result, const std::string& text);

  /// Nothing of it runs or touches a buffer when this returns.
  void end();

 private:
  ncclResult_t begin(std::function<ncclResult_t()> job);
  ncclResult_t connect(const Stop& stop);
  ncclResult_t check_devices(const Stop& stop);
  ncclResult_t finalize();
  ncclResult_t split(int color, int key, ncclComm_t* part);
  void run(const std::vector<Operation>& operations, const Fault& fault);
  ncclResult_t perform(const std::vector<Operation>& operations, const Fault& fault);
  ncclResult_t result_of(End end);

  const std::uint64_t name_;
  const int rank_;
  const int size_;
  const int device_;
  Stop stop_;
  Mesh data_;     // used by operations
  Mesh control_;  // by jobs
  std::atomic<ncclResult_t> state_{ncclSuccess};
  std::atomic<bool> finalized_{false};
  std::atomic<const char*> last_error_{""};
  std::thread job_;
  std::uint64_t splits_ = 0;
  cudaStream_t stream_ = nullptr;  // of all operations, once there was one

  std::mutex guard_;  // of what follows
  std::condition_variable changed_;
  int issued_ = 0;        // operations that have not ended
  bool running_ = false;  // one of them moves data
};

}  // namespace nccl_double

struct ncclComm {
  explicit ncclComm(std::shared_ptr<nccl_double::Comm> what);
  ~ncclComm();
  std::shared_ptr<nccl_double::Comm> it;
};
