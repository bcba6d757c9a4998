#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "ids/ids.hpp"

namespace troupe::runtime {

/// What lets a process call one of another job: it says that it is of that job.
struct JobAccess {
  JobId job{};
  std::array<unsigned char, 32> key{};
};

/// How to reach a process that runs user code. A value; shared by everything that names the
/// process.
struct Address {
  ProcessId process{};
  NodeId node{};  // none: a driver
  std::string host = {};
  std::uint16_t port = 0;
  std::string unix_name = {};
  std::string machine = {};
  /// Of a detached actor's process; nullptr: it is of this job. Never sent with the address.
  std::shared_ptr<const JobAccess> access = {};
};
using AddressPtr = std::shared_ptr<const Address>;

}  // namespace troupe::runtime
