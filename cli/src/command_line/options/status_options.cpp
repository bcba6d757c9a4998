#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, StatusArguments& arguments) {
  add_head_options(command, arguments.head, arguments.token_file);
  command.add_flag("--json", arguments.as_json, "everything, as JSON");
  command.footer(footer("", "status"));
}

}  // namespace troupe::cli
