#pragma once

#include <CLI/CLI.hpp>

#include "options.hpp"

namespace troupe::cli {

inline void add_node_options(CLI::App& command, NodeArguments& arguments) {
  command.add_option("--cpus", arguments.cpus, "cores to offer (default: those this process may use)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--gpus", arguments.gpus, "GPUs to offer (default: those that are there)")
      ->check(CLI::Range(0, 1024));
  command.add_option("--resource", arguments.resources, "a custom resource, NAME=AMOUNT; may be repeated");
  command.add_option("--label", arguments.labels, "a label for placement, KEY=VALUE; may be repeated");
  command.add_option("--name", arguments.name, "the node's name (default: the host name)");
  command.add_option("--node-host", arguments.host,
                     "address where its processes listen (default: the one that reaches the head)");
  command
      .add_option("--object-store-memory", arguments.object_store_bytes,
                  "memory for large values, such as 500MB or 4GiB (default: 30 % of what there is)")
      ->transform(CLI::AsSizeValue(false));
  command.add_option("--spill-directory", arguments.spill_directory,
                     "where large values go that memory has no room for (default: /var/tmp)");
  command.add_option("--log-dir", arguments.log_directory,
                     "where its worker processes' output goes (default: a folder of its own)");
  command
      .add_option("--keep-logs", arguments.kept_logs,
                  "log folders of ended nodes to keep, where --log-dir is not given")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace troupe::cli
