#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// What `troupe list` lists: rows that are made of the head's status, and of what it asks its nodes.
/// A row is an object; a value that is not there is null.
namespace troupe::cli {

struct Kind {
  std::string name;                  // "nodes"
  std::vector<std::string> columns;  // keys of a row, in the order of the table
  std::vector<std::string> filters;  // keys that --filter takes
  nlohmann::json (*rows)(const nlohmann::json& status);
  std::string note;       // what the rows are not; may be empty
  std::size_t limit = 0;  // rows that are shown where nothing else is said; 0: all
  /// What the head is asked beside its status, which then has the answer under this name; empty:
  /// nothing. The answer names the nodes that are "silent".
  std::string asked_of_nodes = {};
  std::string where_silent = {};  // what is lacking of a node that has not answered
};

const std::vector<Kind>& kinds();
const Kind& kind_named(const std::string& name);  ///< which there is
std::vector<std::string> kind_names();
/// The name of the kind that this word names, in the singular or the plural; else empty.
std::string kind_meant(const std::string& word);
std::string keys_text(const Kind& kind);  ///< "job, name, state and pid"

}  // namespace troupe::cli
