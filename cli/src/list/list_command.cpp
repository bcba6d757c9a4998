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
#include "store/catalog/catalog.hpp"
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
std::string why_none(const Kind& kind, const json& rows, const json& asked_nodes,
                     const Filters& filters) {
  if (rows.empty() && asked_nodes.empty())
    return fmt::format("nothing: there are no {}\n", kind.name);
  if (rows.empty()) {
    std::vector<std::string> nodes;
    for (const auto& node : asked_nodes) nodes.push_back(node.dump());
    return fmt::format("nothing: there are no {} on node {}\n", kind.name, some_of(nodes));
  }
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

/// How many rows are shown; 0: all.
std::size_t limit_of(const ListArguments& arguments, const Kind& kind) {
  return arguments.limit != 0 ? arguments.limit : kind.limit;
}

/// Of each node, as many as are shown. What a filter takes may stand behind others.
std::size_t most_of_each_node(const ListArguments& arguments, const Kind& kind) {
  return arguments.filters.empty() ? limit_of(arguments, kind) : store::kMostListed;
}

/// The numbers of the nodes whose rows alone may pass the filters. None: the filters name no node, or
/// none that is there.
json nodes_to_ask(const json& status, const Filters& filters) {
  Filters of_nodes;
  for (const char* key : {"node", "name"}) {  // an object's name is its node's
    if (const auto found = filters.find(key); found != filters.end()) of_nodes.insert(*found);
  }
  json nodes = json::array();
  if (of_nodes.empty()) return nodes;
  for (const auto& node : status.at("nodes")) {
    if (passes(node, of_nodes)) nodes.push_back(node.at("node"));
  }
  return nodes;
}

/// The head's status, with what it has asked its nodes, and which ones: "asked_nodes", none: all.
json ask(const ListArguments& arguments, const Kind& kind, const Filters& filters) {
  const auto head = find_head(arguments.head);
  const auto token = find_token(head, arguments.token_file);
  auto status = ask_head(head, token, {{"do", "status"}});
  status["asked_nodes"] = json::array();
  if (kind.asked_of_nodes.empty()) return status;
  status["asked_nodes"] = nodes_to_ask(status, filters);
  status[kind.asked_of_nodes] = ask_nodes(head, token,
                                          {{"do", kind.asked_of_nodes},
                                           {"nodes", status.at("asked_nodes")},
                                           {"most", most_of_each_node(arguments, kind)}});
  return status;
}

/// Without the rows that the status alone has of other nodes.
json rows_of_asked_nodes(const json& status, const Kind& kind) {
  auto rows = kind.rows(status);
  const auto& asked = status.at("asked_nodes");
  if (asked.empty()) return rows;
  std::erase_if(rows.get_ref<json::array_t&>(), [&asked](const json& row) {
    return std::ranges::find(asked, row.at("node")) == asked.end();
  });
  return rows;
}

/// How many rows there are, with those that no node told.
std::size_t rows_in_all(const json& status, const Kind& kind, const Filters& filters,
                        const json& rows) {
  if (kind.asked_of_nodes.empty() || !filters.empty()) return rows.size();
  return status.at(kind.asked_of_nodes).value(kind.name + "_in_all", rows.size());
}

/// Where a filter has not seen all that there is.
void say_what_no_filter_saw(const json& status, const Kind& kind) {
  if (kind.asked_of_nodes.empty()) return;
  const auto& answer = status.at(kind.asked_of_nodes);
  const auto seen = answer.value(kind.name, json::array()).size();
  const auto in_all = answer.value(kind.name + "_in_all", seen);
  if (seen < in_all) {
    say(stderr, fmt::format("troupe: --filter has chosen among the first {} of {} {}: a node tells "
                            "{} of its own at most, and less where there are many nodes\n",
                            seen, in_all, kind.name, store::kMostListed));
  }
}

/// Leaves the first ones, and says so.
void cut(json& rows, std::size_t limit, std::size_t in_all, const Kind& kind) {
  if (limit != 0 && rows.size() > limit)
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(limit), rows.end());
  if (rows.size() < in_all) {
    say(stderr,
        fmt::format("troupe: {} of {} {} are shown, the first ones: {}--filter {}\n", rows.size(),
                    in_all, kind.name, limit < store::kMostListed ? "--limit shows more, and " : "",
                    limit < store::kMostListed ? "others" : "shows others"));
  }
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
  const auto status = ask(arguments, kind, filters);
  const bool is_whole = kind.asked_of_nodes.empty() ||
                        say_who_is_silent(status.at(kind.asked_of_nodes), kind.where_silent);
  const auto all = rows_of_asked_nodes(status, kind);
  json rows = json::array();
  for (const auto& row : all) {
    if (passes(row, filters)) rows.push_back(row);
  }
  if (!filters.empty()) say_what_no_filter_saw(status, kind);
  cut(rows, limit_of(arguments, kind), rows_in_all(status, kind, filters, rows), kind);
  if (arguments.as_json) {
    say_all(config::to_text(rows, 2) + '\n');
  } else if (rows.empty()) {
    say_all(why_none(kind, all, status.at("asked_nodes"), filters));
  } else {
    say_all(table(kind.columns, rows) + (kind.note.empty() ? "" : kind.note + '\n'));
  }
  return is_whole ? 0 : 1;
}

}  // namespace troupe::cli
