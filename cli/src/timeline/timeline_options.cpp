#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, TimelineArguments& arguments) {
  // One of the two is required: run_timeline() says so.
  auto* out =
      command.add_option("OUT", arguments.output, "the file to write, or - for standard output")
          ->check(not_empty())
          ->type_name(kFile);
  command.add_option("-o,--output", arguments.output, "as OUT")
      ->excludes(out)
      ->check(not_empty())
      ->type_name(kFile);
  command
      .add_option("--last", arguments.last,
                  "only what ran in the last so many seconds (default: all that there is)")
      ->check(above_zero())
      ->type_name("SECONDS");
  command.add_option("--job", arguments.job, "only what this job's processes have run")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command
      .add_option("--from", arguments.folder,
                  "ask no head, but read what nodes that have ended left in this log folder")
      ->check(CLI::ExistingDirectory)
      ->type_name(kFolder);
  add_head_options(command, arguments.head, arguments.token_file);
  command.footer(
      footer("The file opens in https://ui.perfetto.dev and in chrome://tracing: a track "
             "for each worker process, a span\nfor each call, an arrow from each call to "
             "its run.",
             "timeline"));
}

}  // namespace troupe::cli
