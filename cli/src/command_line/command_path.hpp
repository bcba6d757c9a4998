#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// Where a command stands in the option tree.
namespace troupe::cli {

/// The words that begin its command line: "troupe job submit".
std::string path_of(const CLI::App& command);

/// Those of a group, in the order in which help lists them; none: it is a command, and no group.
std::vector<const CLI::App*> commands_of(const CLI::App& group);

/// What these words, behind `group`, name. Throws CLI::ValidationError, with the commands that there
/// are, where they name nothing.
const CLI::App& find_command(const CLI::App& group, const std::vector<std::string>& words);

/// The last of the commands that they begin with; `app` where they begin with none.
const CLI::App& deepest_command(const CLI::App& app, const std::vector<std::string>& words);

/// That the command has no such option, and which one may be meant: one of a name that is near, or
/// the one that does what this option does in torchrun, mpirun or Ray.
std::string unknown_option(const CLI::App& command, const std::string& word);
/// The same of the first of these words that is no option of the command; empty: each of them is.
std::string unknown_option_among(const CLI::App& command, const std::vector<std::string>& words);

/// CLI11 would say that a command is required, neither which there are nor which one it does not
/// know. `words`: all behind `app`. Throws CLI::ValidationError where they begin with no command.
void require_command(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace troupe::cli
