#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ids/ids.hpp"

namespace troupe::runtime {

/// How to reach a process that runs user code. A value; shared by everything that names the
/// process.
struct Address {
  ProcessId process{};
  NodeId node{};  // none: a driver
  std::string host = {};
  std::uint16_t port = 0;
  std::string unix_name = {};
  std::string machine = {};
};
using AddressPtr = std::shared_ptr<const Address>;

}  // namespace troupe::runtime
