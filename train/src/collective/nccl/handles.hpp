#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

/// Owners of what a communicator has on its GPU. They free it also where the communicator's
/// constructor throws half-way.
namespace troupe::train {

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct FreeDeviceMemory {
  void operator()(void* memory) const { cudaFree(memory); }
};

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
template <class T>
using DeviceMemory = std::unique_ptr<T, FreeDeviceMemory>;

/// On the current device; `rank`, and what is made, are named in the errors that check_cuda throws.
/// The stream does not wait for the default stream, and the event takes no time.
Stream make_stream(int rank);
Event make_event(int rank);
/// Zeroed.
DeviceMemory<void> make_zeroed(std::size_t bytes, std::string_view what, int rank);
template <class T>
DeviceMemory<T> make_device_memory(std::string_view what, int rank) {
  return DeviceMemory<T>(static_cast<T*>(make_zeroed(sizeof(T), what, rank).release()));
}

/// A communicator of NCCL, or none. Aborted at its owner's end.
class NcclHandle {
 public:
  NcclHandle() = default;
  NcclHandle(NcclHandle&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  NcclHandle& operator=(NcclHandle&&) = delete;
  ~NcclHandle() { abort(); }

  explicit operator bool() const { return comm_ != nullptr; }
  /// By reference, since a call that is in progress may write it late.
  const ncclComm_t& get() const { return comm_; }
  /// Where NCCL writes a new one. It stays in place until the call that makes it is complete.
  ncclComm_t* address() { return &comm_; }
  void abort();
  /// For one that is finalized.
  void destroy();

 private:
  ncclComm_t comm_ = nullptr;
};

}  // namespace troupe::train
