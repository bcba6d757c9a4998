#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "command_line/options/validators.hpp"

namespace troupe::cli {

void add_options(CLI::App& command, CompletionArguments& arguments) {
  command.add_option("SHELL", arguments.shell, "the shell that the script is for")
      ->required()
      ->check(CLI::IsMember({"bash", "fish", "zsh"}));
  command.footer(
      footer("`./run install` puts the scripts where shells look below its prefix. By hand:\n"
             "  bash: source <(troupe completion bash)\n"
             "  zsh: troupe completion zsh > \"${fpath[1]}/_troupe\"\n"
             "  fish: troupe completion fish > ~/.config/fish/completions/troupe.fish",
             "completion"));
}

void add_options(CLI::App& command, HelpArguments& arguments) {
  command
      .add_option("COMMAND", arguments.command,
                  "the command, such as run or job submit; without it, the list of all")
      ->type_name(kCommandWord);
  command.add_flag("--man", arguments.as_page, "its manual page, as `troupe man` shows it");
  command.footer(footer("`troupe COMMAND --help` prints the same.", "help"));
}

void add_options(CLI::App& command, ManArguments& arguments) {
  command
      .add_option("COMMAND", arguments.command,
                  "the command, such as run or job submit; without it, the page of all")
      ->type_name(kCommandWord);
  command
      .add_option("--write-to", arguments.folder,
                  "write the pages of all commands into this folder, and print none")
      ->check(not_empty())
      ->type_name(kFolder);
  command.footer(footer(
      "On a terminal man(1) shows it, if it is there. Elsewhere it is printed as man(1) reads "
      "it.",
      "man"));
}

}  // namespace troupe::cli
