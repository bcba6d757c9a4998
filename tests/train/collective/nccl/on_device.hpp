#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <troupe/train/communicator.hpp>
#include "collective/background_reductions.hpp"
#include "guard.hpp"
#include "support/forked_gang.hpp"
#include "support/one_gpu.hpp"

/// What the tests of NCCL put on a device. To be used in ranks only, but for run_on_one_gpu().
namespace troupe::testing {

/// Runs a function in each rank of a gang that is to share one GPU. -> failures() of the ranks; ""
/// without a run where no GPU is visible, which is printed.
inline std::string run_on_one_gpu(int ranks, const std::function<void(GangContext&)>& rank) {
  if (skipped_without_gpu()) return "";
  return failures(ForkedGang::on_one_node(ranks).run(rank));
}

inline train::NcclOptions on_one_gpu(const GangContext& gang, std::string name = "nccl") {
  share_one_gpu(gang.rank());
  return {.name = std::move(name), .timeout = test::kGuard, .device = 0};
}

inline train::BackgroundReductions& background_of(train::Communicator& comm) {
  return dynamic_cast<train::BackgroundReductions&>(comm);
}

/// Values in device memory.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : count_(values.size()) {
    expect(cudaMalloc(&data_, bytes()) == cudaSuccess, "device memory");
    cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice);
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  void* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }
  std::size_t count_;
  void* data_ = nullptr;
};
using Numbers = OnDevice<std::int32_t>;

/// Tells when what was put on the default stream is done.
class Filled {
 public:
  Filled() { expect(cudaEventCreate(&event_) == cudaSuccess, "an event"); }
  ~Filled() { cudaEventDestroy(event_); }
  Filled(const Filled&) = delete;
  Filled& operator=(const Filled&) = delete;
  cudaEvent_t now() const {
    expect(cudaEventRecord(event_, cudaStreamLegacy) == cudaSuccess, "recording an event");
    return event_;
  }
  /// The event, as now() has recorded it.
  cudaEvent_t last() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

inline void check_sum(train::Communicator& comm, std::size_t count) {
  const OnDevice data(std::vector<float>(count, static_cast<float>(comm.rank() + 1)));
  comm.all_reduce(data.data(), count, train::DataType::Float32, train::ReduceOp::Average);
  for (float x : data.values())
    expect(x == static_cast<float>(comm.size() + 1) / 2, "the average of 1 .. size");
}

}  // namespace troupe::testing
