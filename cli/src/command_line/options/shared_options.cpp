#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {

void add_head_options(CLI::App& command, std::string& head, std::string& token_file) {
  command.add_option("--head,--address", head, "the head, HOST:PORT")
      ->check(not_empty())
      ->type_name("HOST:PORT");
  command.add_option("--token-file", token_file, "the cluster's secret")
      ->check(not_empty())
      ->type_name(kFile);
}

void add_node_options(CLI::App& command, NodeArguments& arguments) {
  command
      .add_option("--cpus", arguments.cpus,
                  "cores to offer (default: those this process may use, and at least one)")
      ->check(above_zero());
  command.add_option("--gpus", arguments.gpus, "GPUs to offer (default: those that are there)")
      ->check(CLI::Range(0, 1024));
  command.add_option("--resource", arguments.resources,
                     "a custom resource, NAME=AMOUNT; may be repeated");
  command.add_option("--label", arguments.labels,
                     "a label for placement, KEY=VALUE; may be repeated");
  command.add_option("--name", arguments.name, "the node's name (default: the host name)")
      ->check(a_name());
  command
      .add_option("--node-host", arguments.host,
                  "address where its processes listen (default: the one that reaches the head)")
      ->check(not_empty());
  command
      .add_option("--object-store-memory", arguments.object_store_memory,
                  "memory for large values, such as 500MB or 4GiB (default: 30 % of what there is)")
      ->check(not_empty());
  command
      .add_option("--spill-directory", arguments.spill_directory,
                  "where large values go that memory has no room for (default: /var/tmp)")
      ->check(not_empty())
      ->type_name(kFolder);
  command
      .add_option("--log-dir", arguments.log_directory,
                  "where its worker processes' output goes (default: a folder of its own)")
      ->check(not_empty())
      ->type_name(kFolder);
  command
      .add_option("--keep-logs", arguments.kept_logs,
                  "log folders of ended nodes to keep, where --log-dir is not given")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
}

void add_address_options(CLI::App& command, std::string& address, std::string& token_file,
                         const std::string& otherwise) {
  command
      .add_option("--address,--head", address,
                  "the cluster's head, HOST:PORT (default: TROUPE_ADDRESS, else " + otherwise + ")")
      ->check(not_empty())
      ->type_name("HOST:PORT");
  command.add_option("--token-file", token_file, "the cluster's secret")
      ->check(not_empty())
      ->type_name(kFile);
}

}  // namespace troupe::cli
