#pragma once

#include <string>

#include <troupe/errors.hpp>

namespace troupe::launch {

/// Throws Refused.
[[noreturn]] inline void refuse(const std::string& message) {
  raise({.kind = Failure::Kind::Refused, .message = message});
}

}  // namespace troupe::launch
