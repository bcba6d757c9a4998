#pragma once

#include <initializer_list>
#include <stdexcept>

#include <fmt/format.h>

#include "text/json.hpp"

namespace troupe::tune {

/// Throws std::invalid_argument, naming the first difference, unless the scheduler that saved a
/// state had the same `keys` as `own`, the state of a scheduler that has judged nothing.
inline void check_same_scheduler(const Json& saved, const Json& own,
                                 std::initializer_list<const char*> keys) {
  for (const auto* key : keys) {
    const auto there = saved.value(key, Json());
    if (there == own.at(key)) continue;
    throw std::invalid_argument(fmt::format("saved by another scheduler: {} is {} there, {} here",
                                            key, dump(there), dump(own.at(key))));
  }
}

}  // namespace troupe::tune
