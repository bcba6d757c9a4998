#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "admin.hpp"
#include "commands.hpp"
#include "config/json.hpp"
#include "config/name.hpp"
#include "config/nearest.hpp"
#include "list/kinds.hpp"
#include "list/table.hpp"
#include "output.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;
using Filters = std::map<std::string, std::set<std::string>>;  // by key, the values that count

/// Throws std::invalid_argument, with the keys that there are.
Filters read_filters(const Kind& kind, const std::vector<std::string>& given) {
  Filters filters;
  for (const auto& text : given) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw std::invalid_argument(
          fmt::format("--filter '{}' is not of the form KEY=VALUE, such as {}=1; a value that is "
                      "not there is -",
                      config::printable(text), kind.filters.front()));
    }
    const auto key = text.substr(0, equals);
    if (std::ranges::find(kind.filters, key) == kind.filters.end()) {
      throw std::invalid_argument(fmt::format(
          "{} cannot be filtered by '{}': there are the keys {}{}", kind.name,
          config::printable(key), keys_text(kind), config::nearest_in_words(key, kind.filters)));
    }
    filters[key].insert(text.substr(equals + 1));
  }
  return filters;
}

bool passes(const json& row, const Filters& filters) {
  return std::ranges::all_of(filters, [&row](const auto& filter) {
    return filter.second.contains(cell(filter.first, row.at(filter.first)));
  });
}

/// The first ones, and how many more.
std::string some_of(std::vector<std::string> values) {
  constexpr std::size_t kMost = 10;
  const auto more = values.size() - std::min(values.size(), kMost);
  values.resize(values.size() - more);
  return joined(values, " or ") + (more == 0 ? "" : fmt::format(" or one of {} more", more));
}

/// Where rows are there and none of them passes: what they have in place of what was asked for.
std::string why_none(const Kind& kind, const json& rows, const Filters& filters) {
  if (rows.empty()) return fmt::format("nothing: there are no {}\n", kind.name);
  std::vector<std::string> there;
  for (const auto& [key, asked] : filters) {
    std::set<std::string> values;
    for (const auto& row : rows) values.insert(cell(key, row.at(key)));
    there.push_back(fmt::format("{}={}", key, some_of({values.begin(), values.end()})));
  }
  return fmt::format(
      "nothing: the filter leaves out all the {} that there are ({}), which have {}\n", kind.name,
      rows.size(), joined(there, ", "));
}

}  // namespace

int run_list(const ListArguments& arguments) {
  const auto& kind = kind_named(arguments.what);
  Filters filters;
  try {
    filters = read_filters(kind, arguments.filters);
  } catch (const std::invalid_argument& error) {
    say(stderr, fmt::format("troupe list: {}\n", error.what()));
    return 2;
  }
  const auto head = find_head(arguments.head);
  const auto status = ask_head(head, find_token(head, arguments.token_file), {{"do", "status"}});
  const auto all = kind.rows(status);
  json rows = json::array();
  for (const auto& row : all) {
    if (passes(row, filters)) rows.push_back(row);
  }
  if (arguments.as_json) {
    say_all(config::to_text(rows, 2) + '\n');
  } else if (rows.empty()) {
    say_all(why_none(kind, all, filters));
  } else {
    say_all(table(kind.columns, rows) + (kind.note.empty() ? "" : kind.note + '\n'));
  }
  return 0;
}

}  // namespace troupe::cli
