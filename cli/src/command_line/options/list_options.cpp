#include <utility>

#include <fmt/format.h>

#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"
#include "config/name.hpp"
#include "config/nearest.hpp"
#include "list/kinds.hpp"
#include "store/catalog/catalog.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

/// Also "actor", which becomes "actors".
CLI::Validator a_kind() {
  const auto all = fmt::format("{{{}}}", joined(kind_names(), ","));
  return CLI::Validator(
      [all](std::string& word) -> std::string {
        if (auto meant = kind_meant(word); !meant.empty()) {
          word = std::move(meant);
          return {};
        }
        return fmt::format("there is no list of '{}', only of {}{}", config::printable(word), all,
                           config::nearest_in_words(word, kind_names()));
      },
      all);
}

}  // namespace

void add_options(CLI::App& command, ListArguments& arguments) {
  command.add_option("WHAT", arguments.what, "what is listed, a line for each")
      ->required()
      ->transform(a_kind());
  command
      .add_option("--filter", arguments.filters,
                  "only those with this value; may be repeated: of one key either value counts, of "
                  "several keys each")
      ->check(not_empty())
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command
      .add_option("--limit", arguments.limit,
                  "rows that are shown at most; where there are more, standard error says how many "
                  "(default: 100 of objects, all of the others)")
      ->check(CLI::Range(std::size_t{1}, store::kMostListed).description("INT in [1 - 10000]"))
      ->type_name("N");
  command.add_flag("--json", arguments.as_json, "the rows, as JSON");
  add_head_options(command, arguments.head, arguments.token_file);
  std::string notes = "Keys of --filter:";
  for (const auto& kind : kinds()) notes += "\n  " + kind.name + ": " + keys_text(kind);
  command.footer(footer(notes, "list"));
}

}  // namespace troupe::cli
