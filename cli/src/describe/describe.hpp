#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// The option tree in other forms: scripts that complete words, and manual pages. Both come from
/// the tree alone, so that they name every option that there is.
namespace troupe::cli {

struct OptionText {
  enum class Value : unsigned char { None, Text, Choice, File, Folder, CommandWord };
  std::vector<std::string> names;  // "-f", "--follow"; of a positional one, what stands for it
  std::string about;
  std::string placeholder;  // of its value: "FILE"; empty where it has none
  std::string accepts;      // "INT in [0 - 65535]", or empty
  std::string by_default;   // empty: none is shown
  Value value = Value::None;
  std::vector<std::string> choices;
  bool required = false;
  bool repeated = false;  // several values may follow
};

/// A command, or a group of them; the root of the tree is the program itself.
struct CommandText {
  std::string name;  // "submit"
  std::string path;  // its words behind the program: "job submit"; of the program itself: empty
  std::string about;
  std::string notes;  // and not the exit codes
  std::vector<OptionText> options;
  std::vector<OptionText> positionals;
  bool takes_program = false;  // and its arguments, behind the options
  std::vector<CommandText> commands;
};

CommandText describe(const CLI::App& app);

/// `command` and all below it, a group before its commands.
std::vector<const CommandText*> whole_tree(const CommandText& command);
/// "run", "job", ...
std::vector<std::string> command_names(const CommandText& group);
/// How many words name it, behind the program.
std::size_t depth(const CommandText& command);

/// `shell`: bash, fish or zsh.
std::string completion_script(const CommandText& program, const std::string& shell);
std::string bash_completion(const CommandText& program);
std::string fish_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);

/// A page in roff with the macros of man(7), of the command with this path. Throws
/// std::invalid_argument where there is none.
std::string man_page(const CommandText& program, const std::string& path);

/// Writes the pages of the program and of all commands there: troupe.1, troupe-run.1,
/// troupe-job-submit.1, ... Makes the folder. Throws std::runtime_error where that cannot be done.
void write_man_pages(const CommandText& program, const std::string& folder);

}  // namespace troupe::cli
