#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, HeadArguments& arguments) {
  command.add_option("--host", arguments.host, "address to listen on")
      ->check(not_empty())
      ->capture_default_str();
  command.add_option("--port", arguments.port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_option("--state-dir", arguments.state_directory, "where the head keeps its database")
      ->check(not_empty())
      ->type_name(kFolder);
  command
      .add_option("--token-file", arguments.token_file,
                  "the cluster's secret; made if it is not there")
      ->check(not_empty())
      ->type_name(kFile);
  command
      .add_option(
          "--rejoin-patience", arguments.rejoin_patience,
          "seconds for which what only a node that has left could hold waits for it to come back")
      ->check(from_to(0, 86'400))
      ->capture_default_str();
  const auto of_head = command.get_options().size();
  add_node_options(command, arguments.node);
  const auto all = command.get_options();
  auto* no_node = command.add_flag("--no-node", arguments.no_node, "run nothing on this machine");
  for (auto of_node = of_head; of_node < all.size(); ++of_node) all[of_node]->excludes(no_node);
  command.footer(footer("", "head"));
}

}  // namespace troupe::cli
