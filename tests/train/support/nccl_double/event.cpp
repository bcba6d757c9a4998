#include <condition_variable>
#include <memory>
#include <mutex>

#include "support/nccl_double/behaviour.hpp"
#include "support/nccl_double/device.hpp"
#include "support/nccl_double/stream.hpp"

namespace nccl_double {
namespace {

/// One time that an event was recorded.
class Mark {
 public:
  void reach() {
    const std::lock_guard lock(guard_);
    is_reached_ = true;
    changed_.notify_all();
  }
  bool is_reached() {
    const std::lock_guard lock(guard_);
    return is_reached_;
  }
  void wait() {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [this] { return is_reached_; });
  }

 private:
  std::mutex guard_;  // of what follows
  std::condition_variable changed_;
  bool is_reached_ = false;
};

}  // namespace
}  // namespace nccl_double

struct CUevent_st {
  std::shared_ptr<nccl_double::Mark> latest;
};

using namespace nccl_double;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  event->latest = std::make_shared<Mark>();
  queue_of(stream)->push([mark = event->latest] { mark->reach(); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  return !event->latest || event->latest->is_reached() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  note_wait();
  if (event->latest) event->latest->wait();
  return cudaSuccess;
}

/// For the record that is the latest now, whatever comes later.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  if (event->latest) queue_of(stream)->push([mark = event->latest] { mark->wait(); });
  return cudaSuccess;
}
