#include <fmt/format.h>

#include "describe/describe.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

/// Behind it stand the lists that it looks at: the paths of commands, and "PATH:OPTION" of those with a value.
constexpr const char* kFishHead = R"(# Words of `troupe` for fish, made by `troupe completion fish`.
# The words before the one that is completed, without `troupe`, options and their values.
function __troupe_words
  set -l words (commandline -opc)
  set -e words[1]
  set -l command ''
  set -l is_value 0
  for word in $words
    if test $is_value = 1
      set is_value 0
    else if string match -q -- '-*' $word
      contains -- "$command:$word" $__troupe_valued; and set is_value 1
    else
      echo $word
      set -l longer (string trim -- "$command $word")
      contains -- $longer $__troupe_commands; and set command $longer
    end
  end
end
# Whether those words are these.
function __troupe_words_are
  set -l words (__troupe_words)
  test "$words" = "$argv"
end
# Whether those words begin with these.
function __troupe_words_begin
  set -l words (__troupe_words)
  set -l last (count $argv)
  test "$words[1..$last]" = "$argv"
end
# Whether so many of those words stand behind these.
function __troupe_words_behind
  set -l words (__troupe_words)
  test (count $words) -eq (math (count $argv) - 1 + $argv[1]); and __troupe_words_begin $argv[2..-1]
end
)";

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "'";
}

std::string fish_values(const OptionText& option) {
  switch (option.value) {
    case OptionText::Value::None:
      return {};
    case OptionText::Value::Text:
      return " -x";
    case OptionText::Value::Choice:
      return " -x -a " + fish_quoted(joined(option.choices, " "));
    case OptionText::Value::File:
      return " -r -F";
    case OptionText::Value::Folder:
      return " -x -a '(__fish_complete_directories)'";
    case OptionText::Value::CommandWord:
      return " -x";
  }
  return {};
}

/// `set -g __troupe_...` of words that no quotes are in.
std::string fish_list(const std::string& name, const std::vector<std::string>& words) {
  std::string out = "set -g __troupe_" + name;
  for (const auto& word : words) out += " \\\n  '" + word + "'";
  return out + '\n';
}

std::string fish_lists(const CommandText& program) {
  std::vector<std::string> commands;
  std::vector<std::string> valued;
  for (const auto* command : whole_tree(program)) {
    if (!command->path.empty()) commands.push_back(command->path);
    for (const auto& option : command->options) {
      if (option.value == OptionText::Value::None) continue;
      for (const auto& name : option.names) valued.push_back(command->path + ":" + name);
    }
  }
  return fish_list("commands", commands) + fish_list("valued", valued);
}

std::string complete(const std::string& condition, const std::string& words) {
  return fmt::format("complete -c troupe -n '{}' {}\n", condition, words);
}

std::string fish_option(const std::string& condition, const OptionText& option) {
  std::string words;
  for (const auto& name : option.names)
    words += name.starts_with("--") ? "-l " + name.substr(2) + " " : "-s " + name.substr(1) + " ";
  const auto values = fish_values(option);
  return complete(condition, words + (values.empty() ? "" : values.substr(1) + " ") + "-d " +
                                 fish_quoted(option.about));
}

/// What names a command, behind the words that begin with those of `command`.
std::string fish_command_words(const CommandText& program, const CommandText& command) {
  std::string out;
  for (const auto* group : whole_tree(program)) {
    for (const auto& below : group->commands) {
      const auto between = group->path.empty() || command.path.empty() ? "" : " ";
      out += complete("__troupe_words_are " + command.path + between + group->path,
                      fmt::format("-a {} -d {}", below.name, fish_quoted(below.about)));
    }
  }
  return out;
}

std::string fish_positionals(const CommandText& program, const CommandText& command) {
  std::string out;
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const auto& option = command.positionals[i];
    if (option.value == OptionText::Value::CommandWord) {
      out += fish_command_words(program, command);
      continue;
    }
    const auto values = fish_values(option);
    if (option.value == OptionText::Value::Text || values.empty()) continue;
    const auto condition = option.repeated
                               ? "__troupe_words_begin " + command.path
                               : fmt::format("__troupe_words_behind {} {}", i, command.path);
    // -r, which -x contains, is an option's: an argument stands for itself.
    const auto offered = option.value == OptionText::Value::File ? "-F" : values.substr(4);
    out += complete(condition, offered + " -d " + fish_quoted(option.about));
  }
  return out;
}

/// Behind the options of `command`: those that have values have to be told, as fish looks for the
/// program itself. (The dash ends what it takes for options of its own.)
std::string fish_program(const CommandText& command) {
  std::string valued;
  for (const auto& option : command.options) {
    if (option.value == OptionText::Value::None) continue;
    valued += " " + joined(option.names, " ");
  }
  return complete("__troupe_words_begin " + command.path,
                  fmt::format("-x -a '(__fish_complete_subcommand --fcs-skip={} -{})'",
                              depth(command) + 1, valued));
}

}  // namespace

std::string fish_completion(const CommandText& program) {
  // Files are offered where an option or an argument is one, and nowhere else.
  auto out = kFishHead + fish_lists(program) + "complete -c troupe -f\n";
  for (const auto* command : whole_tree(program)) {
    const bool is_group = !command->commands.empty();
    const auto condition =
        (is_group ? "__troupe_words_are " : "__troupe_words_begin ") + command->path;
    if (command->takes_program) out += fish_program(*command);
    for (const auto& below : command->commands)
      out += complete(condition, fmt::format("-a {} -d {}", below.name, fish_quoted(below.about)));
    out += fish_positionals(program, *command);
    for (const auto& option : command->options) out += fish_option(condition, option);
  }
  return out;
}

}  // namespace troupe::cli
