#include "support/nccl_double/stream.hpp"

#include <thread>
#include <vector>

#include "support/nccl_double/behaviour.hpp"
#include "support/nccl_double/device.hpp"

struct CUstream_st {
  std::shared_ptr<nccl_double::Queue> queue;
};

namespace nccl_double {
namespace {

std::mutex queues_guard;  // of what follows
std::vector<std::weak_ptr<Queue>> queues;
std::shared_ptr<Queue> default_queue;

void add_queue(const std::shared_ptr<Queue>& queue) {
  std::erase_if(queues, [](const auto& each) { return each.expired(); });
  queues.push_back(queue);
}

}  // namespace

std::shared_ptr<Queue> Queue::start() {
  auto queue = std::make_shared<Queue>();
  std::thread([queue] { queue->loop(); }).detach();
  return queue;
}

void Queue::push(std::function<void()> work) {
  const std::lock_guard lock(guard_);
  work_.push_back(std::move(work));
  changed_.notify_all();
}

void Queue::wait_idle() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [this] { return work_.empty(); });
}

void Queue::close() {
  const std::lock_guard lock(guard_);
  closed_ = true;
  changed_.notify_all();
}

void Queue::loop() {
  std::unique_lock lock(guard_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !work_.empty(); });
    if (work_.empty()) return;
    const auto work = std::move(work_.front());
    lock.unlock();
    work();
    lock.lock();
    work_.pop_front();
    changed_.notify_all();
  }
}

std::shared_ptr<Queue> queue_of(cudaStream_t stream) {
  if (stream != nullptr && stream != cudaStreamLegacy) return stream->queue;
  const std::lock_guard lock(queues_guard);
  if (!default_queue) {
    default_queue = Queue::start();
    add_queue(default_queue);
  }
  return default_queue;
}

void wait_for_device() {
  std::vector<std::weak_ptr<Queue>> all;
  {
    const std::lock_guard lock(queues_guard);
    all = queues;
  }
  for (const auto& each : all) {
    if (const auto queue = each.lock()) queue->wait_idle();
  }
}

}  // namespace nccl_double

using namespace nccl_double;

/// Streams that wait for the default stream by themselves are not to be had.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  if (flags != cudaStreamNonBlocking) return cudaErrorNotSupported;
  auto queue = Queue::start();
  {
    const std::lock_guard lock(queues_guard);
    add_queue(queue);
  }
  *stream = new CUstream_st{std::move(queue)};
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  stream->queue->close();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  note_wait();
  queue_of(stream)->wait_idle();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  note_wait();
  wait_for_device();
  return cudaSuccess;
}

/// A function of the host is a piece of work as any other.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  queue_of(stream)->push([=] { function(data); });
  return cudaSuccess;
}
