#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include <cuda_runtime_api.h>

namespace nccl_double {

/// What a stream is made of: a thread that does one thing after the other. The thread is detached
/// and shares the queue, since a stream may be destroyed before its work is done, and a process may
/// end before that.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  static std::shared_ptr<Queue> start();
  void push(std::function<void()> work);
  void wait_idle();
  /// The thread ends when all that was pushed is done.
  void close();

 private:
  void loop();

  std::mutex guard_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // the first is under way
  bool closed_ = false;
};

/// Of the default stream, or of one that was made.
std::shared_ptr<Queue> queue_of(cudaStream_t stream);
/// Until all streams are idle.
void wait_for_device();

}  // namespace nccl_double
