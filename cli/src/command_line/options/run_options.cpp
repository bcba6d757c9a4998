#include "command_line/command_path.hpp"
#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"
#include "growth/grow_after.hpp"

namespace troupe::cli {
namespace {

void add_placement(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("-n,--ranks", arguments.size,
                  "ranks: 4; 2:8, as many as fit; gpus, one for each GPU (default: 1)")
      ->check(not_empty());
  command.add_option("--per-node", arguments.per_node, "ranks on each node (default: as they fit)")
      ->check(CLI::Range(1, 65'536));
  command
      .add_option("--cpus", arguments.cpus,
                  "cores of each rank (default: 1; without a cluster, this machine's shared out)")
      ->check(from_to(0, 1e6));
  command.add_option("--gpus", arguments.gpus, "GPUs of each rank (default: 0; 1 with -n gpus)")
      ->check(from_to(0, 1e6));
  command.add_option("--memory-gb", arguments.memory_gb, "memory of each rank, for its placement")
      ->check(above_zero());
  command
      .add_option("--label", arguments.labels,
                  "only on nodes with this label, KEY=VALUE; may be repeated")
      ->allow_extra_args(false);  // which would be the program
  command
      .add_option("--strategy", arguments.strategy, "pack, spread, strict-pack or strict-spread")
      ->check(CLI::IsMember({"pack", "spread", "strict-pack", "strict-spread"}))
      ->capture_default_str();
  command.add_flag("--isolate-gpus", arguments.isolate_gpus,
                   "each rank sees its own GPUs only, not those of all ranks on its node");
}

CLI::Validator seconds_or_never() {
  return CLI::Validator(
      [](std::string& text) {
        if (text == launch::kNever) return std::string();
        const auto why = from_to(1, 1e6)(text);
        return why.empty() ? why : why + ", nor 'never'";
      },
      "");
}

void add_ends(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("--max-restarts", arguments.max_restarts,
                  "how often all ranks are started anew after one has failed")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command
      .add_option(
          "--grow-after", arguments.grow_after,
          "with -n 2:8 and --max-restarts: how long there is room for more ranks before all "
          "are started anew with more, which uses up no restart (default: 30)")
      ->check(seconds_or_never())
      ->type_name("SECONDS|never");
  command.add_option("--timeout", arguments.timeout, "seconds for all of it; then exit status 124")
      ->check(above_zero());
  command
      .add_option("--grace", arguments.grace,
                  "seconds between SIGTERM and SIGKILL, where ranks are ended")
      ->check(from_to(0, 86'400))
      ->capture_default_str();
}

void add_surroundings(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("--env", arguments.environment,
                  "a variable of the ranks, NAME=VALUE, or NAME as it is here; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--no-env", arguments.no_environment,
                   "ranks have their node's environment, and not this one");
  command
      .add_option("--workdir", arguments.workdir,
                  "a folder that is sent to the nodes, to be the working directory there")
      ->check(not_empty())
      ->type_name(kFolder);
  command
      .add_option("--attach", arguments.attached_file,
                  "a file that is sent to the nodes, where TROUPE_ATTACHED_FILE names it")
      ->check(not_empty())
      ->type_name(kFile);
  command
      .add_option("--log-dir", arguments.log_directory,
                  "write what ranks print into files in this folder, not to the terminal")
      ->check(not_empty())
      ->type_name(kFolder);
  command.add_flag("--tee", arguments.tee, "with --log-dir: to the terminal too");
  command.add_flag("--quiet", arguments.quiet, "print only what rank 0 prints");
  command
      .add_option("--result", arguments.result_file,
                  "file for what rank 0 has left in the file that TROUPE_RESULT_FILE names")
      ->check(not_empty())
      ->type_name(kFile);
  command.add_option("--summary", arguments.summary_file, "file for how it ended, as JSON")
      ->check(not_empty())
      ->type_name(kFile);
}

}  // namespace

void add_options(CLI::App& command, RunArguments& arguments) {
  add_placement(command, arguments);
  add_ends(command, arguments);
  add_surroundings(command, arguments);
  add_address_options(command, arguments.address, arguments.token_file);
  command.prefix_command();
  command.footer(
      footer("What follows is the program and its arguments, best behind `--`:\n"
             "  troupe run -n 4 -- python3 train.py --lr 0.1",
             "run"));
}

std::vector<std::string> program_of(const CLI::App& command,
                                    const std::vector<std::string>& behind) {
  const auto name = path_of(command);
  auto program = command.remaining();
  if (!program.empty() && program.front().starts_with('-')) {
    const auto* const where = behind.empty() ? "; a program stands behind `--`" : "";
    throw CLI::ValidationError(name, unknown_option(command, program.front()) + where);
  }
  if (!program.empty() && !behind.empty()) program.push_back("--");
  program.insert(program.end(), behind.begin(), behind.end());
  if (program.empty()) {
    throw CLI::ValidationError(name,
                               "what is it to run? Give a program and its arguments behind `--`");
  }
  return program;
}

}  // namespace troupe::cli
