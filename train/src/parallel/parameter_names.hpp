#pragma once

#include <string>
#include <unordered_map>

namespace troupe::train {

/// The names that prepared models have for parameters, by the parameters' tensors.
using ParameterNames = std::unordered_map<const void*, std::string>;

}  // namespace troupe::train
