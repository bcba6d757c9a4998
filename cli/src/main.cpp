#include <cstdio>
#include <exception>
#include <memory>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "config/name.hpp"
#include "log/log.hpp"
#include "output.hpp"

namespace troupe::cli {
namespace {

/// CLI11's own would print the largest number there is.
CLI::Validator above_zero() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || !(value > 0))
          return "'" + text + "' is not a number above 0";
        return why_nothing(text, value);
      },
      "NUMBER > 0");
}

/// An empty value is a variable that is not set in somebody's script, and not "as if it were not
/// said".
CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return text.empty() ? "was given an empty value" : "";
      },
      "");
}

CLI::Validator a_name() {
  return CLI::Validator([](std::string& text) { return config::why_no_name(text); }, "");
}

void add_node_options(CLI::App& command, NodeArguments& arguments) {
  command
      .add_option("--cpus", arguments.cpus, "cores to offer (default: those this process may use)")
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
      ->check(not_empty());
  command
      .add_option("--log-dir", arguments.log_directory,
                  "where its worker processes' output goes (default: a folder of its own)")
      ->check(not_empty());
  command
      .add_option("--keep-logs", arguments.kept_logs,
                  "log folders of ended nodes to keep, where --log-dir is not given")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
}

void add_options(CLI::App& command, HeadArguments& arguments) {
  command.add_option("--host", arguments.host, "address to listen on")
      ->check(not_empty())
      ->capture_default_str();
  command.add_option("--port", arguments.port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_option("--state-dir", arguments.state_directory, "where the head keeps its database")
      ->check(not_empty());
  command
      .add_option("--token-file", arguments.token_file,
                  "the cluster's secret; made if it is not there")
      ->check(not_empty());
  command
      .add_option(
          "--rejoin-patience", arguments.rejoin_patience,
          "seconds for which what only a node that has left could hold waits for it to come back")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  const auto of_head = command.get_options().size();
  add_node_options(command, arguments.node);
  const auto all = command.get_options();
  auto* no_node = command.add_flag("--no-node", arguments.no_node, "run nothing on this machine");
  for (auto of_node = of_head; of_node < all.size(); ++of_node) all[of_node]->excludes(no_node);
}

void add_options(CLI::App& command, WorkerArguments& arguments) {
  command.add_option("--head,--address", arguments.head, "the head, HOST:PORT")->check(not_empty());
  command
      .add_option("--token-file", arguments.token_file,
                  "the cluster's secret, copied from the head")
      ->check(not_empty());
  add_node_options(command, arguments.node);
}

void add_options(CLI::App& command, StatusArguments& arguments) {
  command.add_option("--head,--address", arguments.head, "the head, HOST:PORT")->check(not_empty());
  command.add_option("--token-file", arguments.token_file, "the cluster's secret")
      ->check(not_empty());
  command.add_flag("--json", arguments.as_json, "everything, as JSON");
}

void add_options(CLI::App& command, LogsArguments& arguments) {
  command.add_option("WHAT", arguments.what, "job, actor or process")
      ->required()
      ->check(CLI::IsMember({"job", "actor", "process"}));
  command.add_option("WHICH", arguments.which, "its number, or an actor's name")
      ->required()
      ->check(not_empty());
  command.add_flag("-f,--follow", arguments.follow, "go on with what is printed from now on");
  command.add_option("--head,--address", arguments.head, "the head, HOST:PORT")->check(not_empty());
  command.add_option("--token-file", arguments.token_file, "the cluster's secret")
      ->check(not_empty());
}

void add_options(CLI::App& command, StopArguments& arguments) {
  command.add_option("--head,--address", arguments.head, "the head, HOST:PORT")->check(not_empty());
  command.add_option("--token-file", arguments.token_file, "the cluster's secret")
      ->check(not_empty());
}

template <class Arguments>
void add_command(CLI::App& app, const char* name, const char* purpose, int (*run)(const Arguments&),
                 int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand(name, purpose);
  add_options(*command, *arguments);
  command->callback([run, arguments, &exit_code] { exit_code = run(*arguments); });
}

/// CLI11 would say that a command is required, and not which one it does not know.
void refuse_unknown_command(CLI::App& app, int argc, char** argv) {
  if (argc < 2 || *argv[1] == '-') return;
  const std::string name = argv[1];
  if (!app.get_subcommands([&name](CLI::App* command) { return command->check_name(name); })
           .empty())
    return;
  throw CLI::ValidationError(
      "troupe", "there is no command '" + name + "', only head, worker, status, logs and stop");
}

int run(int argc, char** argv) {
  CLI::App app{"Troupe: actors, tasks, gangs and sweeps for C++ programs, on one machine or many."};
  app.set_version_flag("--version", std::string("troupe ") + kVersion);
  app.require_subcommand(1);
  log::to_stderr();
  int exit_code = 0;
  add_command(app, "head", "Start a cluster: its head, and a node on this machine.", run_head,
              exit_code);
  add_command(app, "worker", "Add this machine to a cluster.", run_worker, exit_code);
  add_command(app, "status", "Nodes, jobs, actors, and what waits with the reason.", run_status,
              exit_code);
  add_command(app, "logs", "What worker processes have printed: of a job, an actor, a process.",
              run_logs, exit_code);
  add_command(app, "stop", "End this cluster, and no other: its jobs, its nodes, its head.",
              run_stop, exit_code);
  try {
    try {
      refuse_unknown_command(app, argc, argv);
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      exit_code = app.exit(error) == 0 ? 0 : 2;  // also what was asked for, as --help
      flush_output();
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "troupe: %s\n", error.what());
    return 1;
  }
  return exit_code;
}

}  // namespace
}  // namespace troupe::cli

int main(int argc, char** argv) {
  troupe::cli::keep_standard_descriptors();
  return troupe::cli::run(argc, argv);
}
