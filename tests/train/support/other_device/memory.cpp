// The memory of the other device, which is counted and may be limited.
#include "support/other_device.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

namespace troupe::testing {
namespace {

std::atomic<std::int64_t> live_bytes = 0;
std::atomic<std::int64_t> peak_bytes = 0;
std::atomic<std::int64_t> most_bytes = kNoLimit;

/// Memory that is counted while it lives.
struct OtherBlock {
  explicit OtherBlock(std::size_t size)
      : memory(c10::GetCPUAllocator()->allocate(size)), bytes(static_cast<std::int64_t>(size)) {
    const auto now = live_bytes += bytes;
    const std::int64_t limit = most_bytes;
    if (now > limit) live_bytes -= bytes;
    TORCH_CHECK_WITH(OutOfMemoryError, now <= limit, "The other device is out of memory. Tried to ",
                     "allocate ", bytes, " bytes beside ", now - bytes, ", of ", limit, ".");
    auto peak = peak_bytes.load();
    while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
    }
  }
  ~OtherBlock() { live_bytes -= bytes; }
  static void free(void* block) { delete static_cast<OtherBlock*>(block); }

  const c10::DataPtr memory;
  const std::int64_t bytes;
};

struct OtherAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto block = std::make_unique<OtherBlock>(bytes);
    auto* const at = block->memory.get();
    return {at, block.release(), &OtherBlock::free, other_device()};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    return {most_bytes - live_bytes, most_bytes};  // free, and all
  }
} other_allocator;
const c10::AllocatorRegisterer<c10::DeviceType::HPU> registered_allocator(&other_allocator);

}  // namespace

std::int64_t other_bytes() { return live_bytes; }
std::int64_t other_peak_bytes() { return peak_bytes; }
void forget_other_peak() { peak_bytes = live_bytes.load(); }
void limit_other_memory(std::int64_t bytes) { most_bytes = bytes; }

}  // namespace troupe::testing
