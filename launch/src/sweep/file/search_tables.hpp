#pragma once

#include <string>

#include <troupe/tune/detail/search.hpp>

#include "sweep/file/toml_table.hpp"

/// What a sweep's file says of what it searches, and how. All throw Refused, as read_sweep does.
namespace troupe::launch {

constexpr const char* kZero =
    "has a zero byte, \\u0000, which no program can be given: leave it out";
inline bool has_zero(const std::string& text) { return text.find('\0') != std::string::npos; }

/// [space] and [first], with the conditions of fields.
void read_space(TomlTable& file, tune::detail::Plan& plan);

/// `metric` and `mode`, or `objectives` in their place, and `constraints`.
void read_objectives(TomlTable& file, tune::detail::Plan& plan);

/// [scheduler]; without one, none that stops a trial.
tune::SchedulerFactory scheduler_of(TomlTable& file, const tune::SearchSpace& space);

/// [searcher], whose keys are the options of tune/searchers; without one, and for "random" and
/// "grid", an empty one.
tune::SearcherFactory searcher_of(TomlTable& file);

}  // namespace troupe::launch
