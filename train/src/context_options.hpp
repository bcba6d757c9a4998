#pragma once

#include <troupe/train/context_options.hpp>

namespace troupe::train {

/// What the driver gave the run for its contexts; the defaults where it gave nothing. Throws
/// std::invalid_argument, naming the type, where it gave options of another context.
ContextOptions options_from(const ContextSettings& settings);

}  // namespace troupe::train
