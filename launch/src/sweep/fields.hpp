#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace troupe::launch {

/// A value that texts of a sweep name as "{lr}": a field of the trial's configuration, or a path of
/// the trial's own. Crosses to each rank.
struct Field {
  std::string name;
  std::string text;  ///< what stands in place of "{name}"
  std::string json;
};

/// The configuration as a JSON object, in the order of the space.
std::string json_of(const std::vector<Field>& fields);

/// The file in a trial's folder that holds its configuration as JSON; empty where it has no folder.
std::string config_file_in(const std::string& folder);

/// The fields, and behind them what texts may name besides: "{checkpoint_dir}", which is `folder`,
/// the trial's own, and "{config_file}" in it.
std::vector<Field> with_paths(std::vector<Field> fields, const std::string& folder);

/// "{lr}" in the text is put in; "{{" and "}}" are braces. Throws std::invalid_argument for a name
/// that none of `fields` has, with the nearest one.
std::string filled_in(const std::string& text, const std::vector<Field>& fields);
/// Each of them, without those that name a field of `left_out`, which the trial has not.
std::vector<std::string> filled_in(const std::vector<std::string>& texts,
                                   const std::vector<Field>& fields,
                                   const std::vector<std::string>& left_out = {});
/// The values of the variables; their names are taken as they are.
Variables filled_in(const Variables& variables, const std::vector<Field>& fields,
                    const std::vector<std::string>& left_out = {});
/// Whether the text has "{name}" for one of the names.
bool names_any(const std::string& text, const std::vector<std::string>& names);

}  // namespace troupe::launch
