#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "objects/object.hpp"

namespace troupe::runtime {

/// What crosses from one job to another: bytes alone. The object store of a job is mapped by its own
/// processes only, and a ref's owner answers those of its own job only.
///
/// Of an outcome: a large value is copied into the message, refs in it are refused. On the thread
/// that runs user code; blocks while a value is brought here.
Outcome by_value(Outcome outcome, std::string_view function);

/// Likewise of a call's arguments, whose values are here. `then`: on the loop, or within.
using ByValue = std::variant<std::vector<detail::Argument>, Failure>;
void bring_by_value(std::vector<detail::Argument> arguments, std::string_view function,
                    std::function<void(ByValue)> then);

}  // namespace troupe::runtime
