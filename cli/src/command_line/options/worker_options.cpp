#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, WorkerArguments& arguments) {
  command.add_option("--head,--address", arguments.head, "the head, HOST:PORT")
      ->check(not_empty())
      ->type_name("HOST:PORT");
  command
      .add_option("--token-file", arguments.token_file,
                  "the cluster's secret, copied from the head")
      ->check(not_empty())
      ->type_name(kFile);
  command
      .add_option(
          "--head-silence", arguments.head_silence,
          "seconds for which a head that stands still or cannot be reached is waited for, to "
          "join it, and with all processes later")
      ->check(from_to(1, 86'400))
      ->capture_default_str();
  add_node_options(command, arguments.node);
  command.footer(footer("", "worker"));
}

}  // namespace troupe::cli
