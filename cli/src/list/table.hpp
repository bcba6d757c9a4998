#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace troupe::cli {

/// One value as a table has it, and as --filter compares it: "-" for null and for an empty text.
std::string cell(const std::string& key, const nlohmann::json& value);

/// A line of titles and one for each row, the columns aligned. Nothing is cut short.
std::string table(const std::vector<std::string>& columns, const nlohmann::json& rows);

}  // namespace troupe::cli
