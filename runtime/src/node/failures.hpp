#pragma once

#include <string>
#include <utility>

#include <troupe/errors.hpp>

namespace troupe::node {

inline Failure failure_of(Failure::Kind kind, std::string message) {
  Failure failure;
  failure.kind = kind;
  failure.message = std::move(message);
  return failure;
}

}  // namespace troupe::node
