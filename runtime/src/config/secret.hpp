#pragma once

#include <array>

namespace troupe::config {

/// A cluster's token, or a key made of it.
using Secret = std::array<unsigned char, 32>;

}  // namespace troupe::config
