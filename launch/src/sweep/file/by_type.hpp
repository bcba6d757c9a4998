#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/nearest.hpp"
#include "sweep/file/toml_table.hpp"

namespace troupe::launch {

/// What one value of a table's `type` makes of the other keys.
template <class Factory>
struct OfType {
  std::string type;
  /// Throws std::invalid_argument for a value that cannot be.
  std::function<Factory(TomlTable&)> make;
};

/// What the table describes. Throws Refused for a `type` that is none of `all`, and for a value that
/// cannot be, or a key that it does not have.
template <class Factory>
Factory made_by_type(TomlTable& table, const std::vector<OfType<Factory>>& all) {
  const auto type = table.text("type").value_or("");
  std::vector<std::string> types;
  for (const auto& each : all) {
    types.push_back(each.type);
    if (each.type != type) continue;
    try {
      return each.make(table);
    } catch (const std::invalid_argument& refused) {
      table.refuse_named(refused.what(), "type");
    }
  }
  table.refuse("type", fmt::format("is one of {}{}", fmt::join(types, ", "),
                                   config::nearest_in_words(type, types)));
}

}  // namespace troupe::launch
