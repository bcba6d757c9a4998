#include "collective/nccl/handles.hpp"

#include "collective/nccl/cuda_error.hpp"

namespace troupe::train {

Stream make_stream(int rank) {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream", rank);
  return Stream(stream);
}

Event make_event(int rank) {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event", rank);
  return Event(event);
}

DeviceMemory<void> make_zeroed(std::size_t bytes, std::string_view what, int rank) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), what, rank);
  DeviceMemory<void> owned(memory);
  check_cuda(cudaMemset(memory, 0, bytes), what, rank);
  return owned;
}

void NcclHandle::abort() {
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
}

void NcclHandle::destroy() {
  ncclCommDestroy(comm_);
  comm_ = nullptr;
}

}  // namespace troupe::train
