#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "list/running_calls.hpp"

namespace troupe::cli {

/// Who holds what is not free on a node, by the status: "2 CPUs by 2 actors Counter (job 2)". Processes
/// of a job that do the same have one text, in the order of the first of each.
std::vector<std::string> holders(const nlohmann::json& status, std::uint64_t node,
                                 const RunningCalls& running);

/// Whether some leased process holds anything, so that its node is to be asked what it runs.
bool has_leased_holder(const nlohmann::json& status);

}  // namespace troupe::cli
