#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, DoctorArguments& arguments) {
  add_head_options(command, arguments.head, arguments.token_file);
  command.add_flag("--json", arguments.as_json, "the findings, as JSON");
  command.footer(footer(
      "A finding is one line, `ok`, `note` or `problem`, what was looked at, and its value;\n"
      "behind a note and a problem follows what to do about it.",
      "doctor"));
}

}  // namespace troupe::cli
