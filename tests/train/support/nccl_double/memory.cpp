#include "support/nccl_double/memory.hpp"

#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "support/nccl_double/behaviour.hpp"
#include "support/nccl_double/device.hpp"
#include "support/nccl_double/nccl_double.hpp"
#include "support/nccl_double/stream.hpp"

namespace nccl_double {
namespace {

constexpr unsigned char kUnwritten = 0xCD;  // fresh memory of a device is not zero

struct Block {
  std::unique_ptr<unsigned char[]> data;
  std::size_t bytes;
};
std::mutex blocks_guard;  // of what follows
std::map<const void*, Block> blocks;
std::size_t allocated = 0;

void take_time() { std::this_thread::sleep_for(behaviour().copies_take); }

}  // namespace

bool is_device_memory(const void* data, std::size_t bytes) {
  const std::lock_guard lock(blocks_guard);
  auto next = blocks.upper_bound(data);
  if (next == blocks.begin()) return false;
  const auto& [start, block] = *std::prev(next);
  const auto before =
      static_cast<std::size_t>(static_cast<const char*>(data) - static_cast<const char*>(start));
  return before <= block.bytes && bytes <= block.bytes - before;
}

std::size_t device_bytes() {
  const std::lock_guard lock(blocks_guard);
  return allocated;
}

}  // namespace nccl_double

using namespace nccl_double;

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  const std::lock_guard lock(blocks_guard);
  const auto limit = behaviour().memory;
  if (allocated > limit || bytes > limit - allocated) return cudaErrorMemoryAllocation;
  auto block = std::make_unique_for_overwrite<unsigned char[]>(bytes);
  std::memset(block.get(), kUnwritten, bytes);
  *data = block.get();
  blocks.emplace(*data, Block{std::move(block), bytes});
  allocated += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  note_wait();
  wait_for_device();
  const std::lock_guard lock(blocks_guard);
  const auto found = blocks.find(data);
  if (found == blocks.end()) return cudaErrorInvalidValue;
  allocated -= found->second.bytes;
  blocks.erase(found);
  return cudaSuccess;
}

/// Returns before it is done.
cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  if (!is_device_memory(data, bytes)) return cudaErrorInvalidValue;
  queue_of(cudaStreamLegacy)->push([=] {
    take_time();
    std::memset(data, value, bytes);
  });
  return cudaSuccess;
}

/// Between a device and main memory: it waits until it is done, and for nothing on other streams.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  const bool to_device = kind == cudaMemcpyHostToDevice;
  if (!to_device && kind != cudaMemcpyDeviceToHost) return cudaErrorNotSupported;
  if (!is_device_memory(to_device ? to : from, bytes)) return cudaErrorInvalidValue;
  auto done = std::make_shared<std::promise<void>>();
  auto future = done->get_future();
  note_wait();
  queue_of(cudaStreamLegacy)->push([=] {
    take_time();
    std::memcpy(to, from, bytes);
    done->set_value();
  });
  future.wait();
  return cudaSuccess;
}
