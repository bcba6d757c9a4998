// The other device with the events and the default stream of the double of the CUDA runtime, for
// which the communicator over NCCL may wait.
#include <cuda_runtime_api.h>

#include "support/other_device/guard.hpp"

namespace troupe::testing {
namespace {

void check(cudaError_t result) {
  TORCH_CHECK(result == cudaSuccess, "the other device: ", cudaGetErrorString(result));
}

cudaEvent_t as_event(void* event) { return static_cast<cudaEvent_t>(event); }

struct GuardWithEvents final : OtherGuard {
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) {
      cudaEvent_t made = nullptr;
      check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
      *event = made;
    }
    check(cudaEventRecord(as_event(*event), cudaStreamLegacy));
  }
  void block(void* event, const c10::Stream&) const override {
    check(cudaStreamWaitEvent(cudaStreamLegacy, as_event(event), 0));
  }
  bool queryEvent(void* event) const override {
    return cudaEventQuery(as_event(event)) == cudaSuccess;
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    cudaEventDestroy(as_event(event));
  }
  void synchronizeEvent(void* event) const override {
    check(cudaEventSynchronize(as_event(event)));
  }
  void synchronizeStream(const c10::Stream&) const override {
    check(cudaStreamSynchronize(cudaStreamLegacy));
  }
};
C10_REGISTER_GUARD_IMPL(HPU, GuardWithEvents)

}  // namespace
}  // namespace troupe::testing
