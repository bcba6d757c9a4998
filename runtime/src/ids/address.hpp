#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::runtime {

using ProcessId = std::uint64_t;

/// How to reach a process that runs user code. A value; shared by everything that names the
/// process.
struct Address {
  ProcessId process = 0;
  std::uint32_t node = 0;  // 0: a driver
  std::string host = {};
  std::uint16_t port = 0;
  std::string unix_name = {};
  std::string machine = {};
};
using AddressPtr = std::shared_ptr<const Address>;

}  // namespace troupe::runtime
