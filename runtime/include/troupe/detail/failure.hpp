#pragma once

#include <string>

#include <troupe/errors.hpp>

namespace troupe::detail {

/// The exception that is being handled (call it in a catch block), as a value that can cross to the
/// caller, who will throw it as TaskError. `where` is where it happened. A TaskError that passes
/// through keeps its first type, text and place; GangBroken and Cancelled stay what they are, so
/// that a caller can tell a broken gang from a fault of its own.
Failure current_failure(std::string where);

/// The same of a function that answers for all that it throws, as a trial does: Cancelled, StoreFull
/// and GangBroken are Failure::Kind::Task as well, whatever they come from.
Failure current_failure_of_user(std::string where);

}  // namespace troupe::detail
