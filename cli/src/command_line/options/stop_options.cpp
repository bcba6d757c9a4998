#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, StopArguments& arguments) {
  add_head_options(command, arguments.head, arguments.token_file);
  command.footer(footer("", "stop"));
}

}  // namespace troupe::cli
