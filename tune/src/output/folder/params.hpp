#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <troupe/tune/results.hpp>

#include "output/append_file.hpp"
#include "text/json.hpp"

/// `params.json` in a run's folder: the search as it is now, for people, and what its trials were given
/// of the fields that are not searched:
///
///   config            each such field, for the attempts that begin from now on
///   earlier_configs   [{"attempts": [1, 2], "config": {"epochs": 3}}, ...], one for each time that the
///                     run was gone on with, with another `.config`: how many attempts each trial had
///                     made by then, and what the fields had that were changed
namespace troupe::tune {

/// Throws std::runtime_error with the path and the cause.
void write_params(const std::filesystem::path& folder, const Json& params, Sync sync = Sync::No);
/// An empty object where there are none, or they cannot be read.
Json read_params(const std::filesystem::path& folder);

/// What `params`, or an entry of its earlier_configs, says of the fields that are not searched; nothing
/// of what no field can hold.
Configuration unsearched_in(const Json& params);
std::vector<detail::EarlierConfig> earlier_configs_in(const Json& params);

/// Where `params` has another `.config` than `now`, makes that the earlier one of the attempts until
/// now. -> a line for each field that differs.
std::vector<std::string> change_config(Json& params, const Json& now,
                                       const std::vector<Trial>& trials);
/// Puts the earlier ones of `from` into `params`.
void keep_earlier_configs(Json& params, const Json& from);

}  // namespace troupe::tune
