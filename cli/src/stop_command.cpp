#include <memory>

#include <fmt/format.h>

#include "admin.hpp"
#include "commands.hpp"
#include "config/token.hpp"
#include "options.hpp"

namespace troupe::cli {
namespace {

struct StopArguments {
  std::string head;
  std::string token_file;
};

int run_stop(const StopArguments& arguments) {
  const auto head = find_head(arguments.head);
  const auto answer = stop_head(head, config::find_token(arguments.token_file));
  fmt::print("stopped the cluster at {} ({} nodes)\n", config::format_address(head.at.host, head.at.port),
             answer.value("nodes", 0));
  return 0;
}

}  // namespace

void add_stop_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StopArguments>();
  auto* command = app.add_subcommand("stop", "End this cluster, and no other: its jobs, its nodes, its head.");
  command->add_option("--head,--address", arguments->head, "the head, HOST:PORT");
  command->add_option("--token-file", arguments->token_file, "the cluster's secret");
  command->callback([arguments, &exit_code] { exit_code = run_stop(*arguments); });
}

}  // namespace troupe::cli
