#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "collective/nccl/on_device.hpp"
#include "support/forked_gang.hpp"
#include "support/nccl_double/nccl_double.hpp"

/// Ranks over the double of NCCL. To be used in ranks only.
namespace troupe::testing {

inline std::unique_ptr<train::Communicator> over_double(GangContext& gang,
                                                        std::chrono::milliseconds timeout,
                                                        std::string name = "nccl") {
  auto options = on_one_gpu(gang, std::move(name));
  options.timeout = timeout;
  return train::make_nccl_communicator(gang, options);
}

/// Once the communicators and the buffers have ended: they have left nothing on the device, and a
/// new communicator works in this process.
inline void expect_usable(GangContext& gang) {
  expect(nccl_double::communicators() == 0, "no communicator of NCCL is left");
  expect(nccl_double::device_bytes() == 0, "no memory of the device is left");
  nccl_double::behave({});
  check_sum(*over_double(gang, test::kGuard, "another"), 1000);
}

}  // namespace troupe::testing
