#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, LogsArguments& arguments) {
  auto* what = command
                   .add_option("WHAT", arguments.what,
                               "job, actor or process; without it, what there is is listed")
                   ->check(not_empty())
                   ->type_name("{job,actor,process}");
  command
      .add_option("WHICH", arguments.which,
                  "its number, or an actor's name; alone, a number is a job's")
      ->check(not_empty());
  command.add_option("--job", arguments.job_number, "as job and its number")
      ->excludes(what)
      ->check(not_empty())
      ->type_name("N");
  command.add_flag("-f,--follow", arguments.follow, "go on with what is printed from now on");
  add_head_options(command, arguments.head, arguments.token_file);
  command.footer(footer("", "logs"));
}

}  // namespace troupe::cli
