#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// What `troupe list` lists: rows that are made of the head's status. A row is an object; a value
/// that is not there is null.
namespace troupe::cli {

struct Kind {
  std::string name;                  // "nodes"
  std::vector<std::string> columns;  // keys of a row, in the order of the table
  std::vector<std::string> filters;  // keys that --filter takes
  nlohmann::json (*rows)(const nlohmann::json& status);
  std::string note;  // what the rows are not; may be empty
};

const std::vector<Kind>& kinds();
const Kind& kind_named(const std::string& name);  ///< which there is
std::vector<std::string> kind_names();
/// The name of the kind that this word names, in the singular or the plural; else empty.
std::string kind_meant(const std::string& word);
std::string keys_text(const Kind& kind);  ///< "job, name, state and pid"

}  // namespace troupe::cli
