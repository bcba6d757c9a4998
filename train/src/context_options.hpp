#pragma once

#include <troupe/train/context_options.hpp>

namespace troupe::train {

/// The options as train::run gives them to the ranks, which tells them from those of a sweep.
ContextSettings settings_of_run(const ContextOptions& options);
/// Whether settings_of_run() has made them.
bool are_of_run(const ContextSettings& settings);

/// What the driver gave the run for its contexts; the defaults where it gave nothing. Throws
/// std::invalid_argument, naming the type, where it gave options of another context.
ContextOptions options_from(const ContextSettings& settings);

}  // namespace troupe::train
