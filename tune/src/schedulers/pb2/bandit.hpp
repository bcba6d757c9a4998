#pragma once

#include <memory>

#include <troupe/tune/schedulers/pb2.hpp>

#include "schedulers/explorer.hpp"

namespace troupe::tune {

/// The explore step of pb2.hpp. Throws std::invalid_argument for what pb2() refuses beside Pbt.
std::unique_ptr<Explorer> bandit_explorer(const Pb2Options& options, std::uint64_t seed);

}  // namespace troupe::tune
