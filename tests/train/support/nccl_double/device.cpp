#include "support/nccl_double/device.hpp"

#include <atomic>

#include <unistd.h>

#include "support/nccl_double/nccl_double.hpp"

namespace nccl_double {
namespace {

std::atomic<pid_t> first_user{0};  // the process that used a device first; its forks inherit it
thread_local int device_of_thread = 0;

}  // namespace

cudaError_t enter() {
  const auto self = ::getpid();
  pid_t nobody = 0;
  if (!first_user.compare_exchange_strong(nobody, self) && nobody != self)
    return cudaErrorInitializationError;
  const auto how = behaviour();
  return how.devices < 1 ? cudaErrorNoDevice : how.device_error;
}

int current_device() { return device_of_thread; }

}  // namespace nccl_double

using namespace nccl_double;

cudaError_t cudaGetDeviceCount(int* count) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  *count = behaviour().devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const auto failed = enter(); failed != cudaSuccess) return failed;
  if (device < 0 || device >= behaviour().devices) return cudaErrorInvalidDevice;
  device_of_thread = device;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
      return "cudaErrorInitializationError";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInitializationError:
      return "initialization error";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorNotSupported:
      return "operation not supported";
    default:
      return "unrecognized error code";
  }
}
