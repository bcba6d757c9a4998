#pragma once

#include <troupe/tune/detail/search.hpp>

#include "sweep/toml_table.hpp"

/// What a sweep's file says of how it searches. Both throw Refused, as read_sweep does.
namespace troupe::launch {

/// [scheduler]; without one, none that stops a trial.
tune::SchedulerFactory scheduler_of(TomlTable& file, const tune::SearchSpace& space);

/// [searcher], whose keys are the options of tune/searchers; without one, and for "random" and
/// "grid", an empty one.
tune::SearcherFactory searcher_of(TomlTable& file);

}  // namespace troupe::launch
