#pragma once

#include <string>

#include <troupe/detail/core.hpp>

namespace troupe::detail {

/// "int (std::string, int)" of a function that this program has; empty where it has none. For
/// errors: it takes the name of a type apart, which costs microseconds. Any thread.
std::string signature_of(const FunctionKey& function);

}  // namespace troupe::detail
