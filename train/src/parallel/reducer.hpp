#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/communicator.hpp>
#include <troupe/train/data_parallel.hpp>

namespace torch::autograd {
struct Node;
}

namespace troupe::train {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Averages gradients over the ranks while backward still runs (Li et al., PyTorch Distributed, VLDB 2020).
///
/// Parameters are put, in reverse order, since backward comes to the last ones first, into buckets: flat buffers whose
/// parts the gradients become. A hook behind each parameter's accumulation copies a gradient that is elsewhere into its
/// part; the hook that fills a bucket hands it, in the order of buckets, to a thread of the reducer, which reduces it
/// while backward goes on. The last bucket is reduced by the thread of backward itself, at its end, since nothing is left
/// to overlap with; so a small model needs no second thread. When backward() returns, all gradients are averages.
///
/// Lives in one rank's process, for one model. Hooks hold it weakly, so the model may live longer. Used by the thread
/// that runs backward; buckets are handed over by two counters.
class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  /// For tests: what happened, in order, from two threads.
  enum class Event { Submitted, Reduced, BackwardEnded };
  using Trace = std::function<void(Event, std::size_t bucket)>;

  /// `parameters`: those that want gradients, each once, the same on every rank. `communicator` outlives the reducer.
  static std::shared_ptr<Reducer> make(Communicator& communicator, std::vector<NamedTensor> parameters,
                                       const DataParallelOptions& options, Trace trace = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// false: backward leaves the gradients of this rank as they are.
  void set_synchronized(bool on) { synchronized_ = on; }
  std::size_t buckets() const { return buckets_.size(); }

 private:
  struct Parameter {
    std::string name;
    at::Tensor variable;
    at::Tensor part;  // of its bucket, in its shape
    std::size_t bucket = 0;
    std::shared_ptr<torch::autograd::Node> accumulator;
    std::uintptr_t hook = 0;
    bool ready = false;
  };
  struct Bucket {
    std::shared_ptr<void> memory;  // of the communicator, or empty
    at::Tensor flat;
    std::vector<std::size_t> members;
    std::size_t waiting = 0;  // members that are not ready in this backward
  };
  class Hook;

  Reducer(Communicator& communicator, const DataParallelOptions& options, Trace trace);
  void fill_buckets(std::vector<NamedTensor> parameters);
  void allocate(Bucket& bucket);
  void install_hooks();

  void on_gradient(std::size_t index);
  void begin_backward();
  void mark_ready(Parameter& parameter);
  void submit_full_buckets();
  void end_backward();
  std::vector<std::size_t> add_unused();
  void share_unused(const std::vector<std::size_t>& unused);
  [[noreturn]] void refuse_unused(const std::vector<std::size_t>& unused);
  void reduce(std::size_t bucket);
  void await_thread();
  void run_thread();
  void trace(Event event, std::size_t bucket) {
    if (trace_) trace_(event, bucket);
  }

  Communicator& communicator_;
  const DataParallelOptions options_;
  const Trace trace_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  bool synchronized_ = true;
  bool in_backward_ = false;
  std::size_t full_ = 0;  // buckets of this backward that are full, up to the first that is not

  // Between backward's thread and the reducer's own: how many buckets were ever handed over and are done, both counted
  // over all backwards, in each of which all buckets but the last are handed over.
  std::thread thread_;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> stopping_{false};
  std::exception_ptr error_;  // of the thread; read once done_ has caught up
};

}  // namespace troupe::train
