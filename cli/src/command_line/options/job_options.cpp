#include <string_view>

#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {
namespace {

void add_submit_options(CLI::App& command, JobArguments& arguments) {
  command.add_option("--name", arguments.job, "the job's name (default: one is made)")
      ->check(a_name());
  command.add_option("--cpus", arguments.cpus, "cores set aside for the program itself")
      ->check(from_to(0, 1e6));
  command.add_option("--gpus", arguments.gpus, "GPUs of the program itself")
      ->check(from_to(0, 1e6));
  command
      .add_option("--workdir", arguments.workdir,
                  "a folder that is sent to its node, to be the working directory there")
      ->check(not_empty())
      ->type_name(kFolder);
  command
      .add_option("--env", arguments.environment,
                  "a variable of the program, NAME=VALUE, or NAME as it is here; may be repeated")
      ->allow_extra_args(false);  // which would be the program
  command.add_flag("--no-env", arguments.no_environment,
                   "the program has its node's environment, and not this one");
  command.add_flag("--wait", arguments.wait, "wait for its end, and end as it does");
  command.prefix_command();
}

void add_job_name(CLI::App& command, JobArguments& arguments) {
  command.add_option("JOB", arguments.job, "its name")->required();
}

}  // namespace

void add_options(CLI::App& command, JobArguments& arguments) {
  const std::string_view what = arguments.what;
  add_address_options(command, arguments.address, arguments.token_file, "this machine's");
  std::string notes;
  if (what == "submit") {
    add_submit_options(command, arguments);
    notes =
        "What follows is the program and its arguments, best behind `--`:\n"
        "  troupe job submit --name night -- ./search --trials 100";
  } else if (what != "list") {
    add_job_name(command, arguments);
  }
  if (what == "list" || what == "status") command.add_flag("--json", arguments.as_json, "as JSON");
  if (what == "logs")
    command.add_flag("-f,--follow", arguments.follow, "go on with what is printed from now on");
  if (what == "stop") {
    command.add_option("--grace", arguments.grace, "seconds between SIGTERM and SIGKILL")
        ->check(from_to(0, 86'400))
        ->capture_default_str();
  }
  command.footer(footer(notes, "job " + arguments.what));
}

}  // namespace troupe::cli
