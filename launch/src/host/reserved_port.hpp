#pragma once

#include <cstdint>

#include "os/unique_fd.hpp"

namespace troupe::launch {

/// A TCP port of this machine that nobody listens on, and that no other gang's host gets while this
/// object lives. It is from below the range from which Linux takes ports by itself
/// (net.ipv4.ip_local_port_range), so that no connection takes it either. A program that asks for
/// the very number may have it, which is what it is for.
class ReservedPort {
 public:
  /// Throws Refused where there is none.
  ReservedPort();

  std::uint16_t number() const { return number_; }

 private:
  bool claim(std::uint16_t number);

  std::uint16_t number_ = 0;
  os::UniqueFd claim_;  // an abstract unix socket, whose name is the number: one owner on a machine
};

}  // namespace troupe::launch
