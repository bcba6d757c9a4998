#include <string_view>

#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, TuneArguments& arguments) {
  const std::string_view what = arguments.what;
  const bool looks = what == "show" || what == "report";
  command
      .add_option("FILE", arguments.file,
                  looks
                      ? "the sweep, a TOML file; or the folder of a run, also of a C++ program, or "
                        "the folder with its runs"
                      : "the sweep, a TOML file")
      ->required()
      ->type_name(kFile);
  if (what == "run" || what == "resume" || what == "check")
    add_address_options(command, arguments.address, arguments.token_file);
  if (what == "resume" || what == "show" || what == "report") {
    command.add_option("--run", arguments.run, "the run's folder (default: the sweep's last run)")
        ->check(not_empty())
        ->type_name(kFolder);
  }
  if (what == "show") command.add_flag("--json", arguments.as_json, "as summary.json has it");
  if (what == "report") {
    command
        .add_option("-o,--output", arguments.output,
                    "where to write the page (default: report.html in the run's folder)")
        ->check(not_empty())
        ->type_name(kFile);
  }
  command.footer(footer("", "tune " + arguments.what));
}

}  // namespace troupe::cli
