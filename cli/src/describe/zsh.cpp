#include <algorithm>

#include <fmt/format.h>

#include "describe/describe.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

/// Within single quotes, and within the brackets or before the colon of an argument of _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\'') {
      out += "'\\''";
      continue;
    }
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

std::string zsh_action(const OptionText& option) {
  switch (option.value) {
    case OptionText::Value::Choice:
      return fmt::format("({})", joined(option.choices, " "));
    case OptionText::Value::File:
      return "_files";
    case OptionText::Value::Folder:
      return "_files -/";
    case OptionText::Value::CommandWord:
      return "_troupe_command_words";
    default:
      return " ";
  }
}

/// One for each name.
std::string zsh_option(const OptionText& option) {
  std::string out;
  for (const auto& name : option.names) {
    const bool has_value = option.value != OptionText::Value::None;
    const auto* const joins = !has_value ? "" : name.starts_with("--") ? "=" : "+";
    const auto value =
        has_value ? fmt::format(":{}:{}", zsh_text(option.placeholder), zsh_action(option)) : "";
    out += fmt::format(" \\\n        '*{}{}[{}]{}'", name, joins, zsh_text(option.about), value);
  }
  return out;
}

std::string zsh_arguments(const CommandText& command) {
  std::string out = "_arguments -s -S";
  for (const auto& option : command.options) out += zsh_option(option);
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const auto& option = command.positionals[i];
    const auto place = option.repeated ? "*" : std::to_string(i + 1);
    out += fmt::format(" \\\n        '{}:{}:{}'", place, zsh_text(option.names.front()),
                       zsh_action(option));
  }
  if (command.takes_program)
    out += " \\\n        '(-)1:program:_command_names -e' \\\n        '*::argument:_normal'";
  return out;
}

std::string zsh_function_name(const CommandText& group) {
  auto name = "_troupe" + (group.path.empty() ? "" : "_" + group.path);
  std::ranges::replace(name, ' ', '_');
  return name;
}

/// A function for each group (`commands` would hide the array in which zsh has all programs), which calls those of the groups in it.
std::string zsh_function(const CommandText& group) {
  auto out = zsh_function_name(group) +
             "() {\n  local curcontext=\"$curcontext\" state line\n  local -a below\n"
             "  below=(\n";
  for (const auto& command : group.commands)
    out += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.about));
  out += "  )\n  _arguments -C";
  for (const auto& option : group.options) out += zsh_option(option);
  out +=
      " \\\n    '1:command:->command' \\\n    '*::argument:->arguments'\n"
      "  case \"$state\" in\n    command) _describe command below ;;\n"
      "    arguments)\n      case \"$line[1]\" in\n";
  for (const auto& command : group.commands) {
    out +=
        fmt::format("      {})\n        {} ;;\n", command.name,
                    command.commands.empty() ? zsh_arguments(command) : zsh_function_name(command));
  }
  return out + "      esac ;;\n  esac\n}\n";
}

/// The words of a command as arguments: of `troupe man`.
std::string zsh_command_words(const CommandText& program) {
  std::string out =
      "_troupe_command_words() {\n  local -a given names\n"
      "  given=(${words[2,CURRENT-1]:#-*})\n  case \"$given\" in\n";
  for (const auto* group : whole_tree(program)) {
    if (group->commands.empty()) continue;
    out +=
        fmt::format("    '{}') names=({}) ;;\n", group->path, joined(command_names(*group), " "));
  }
  return out + "  esac\n  compadd -a names\n}\n";
}

}  // namespace

std::string zsh_completion(const CommandText& program) {
  std::string out =
      "#compdef troupe\n# Words of `troupe` for zsh, made by `troupe completion zsh`.\n";
  for (const auto* group : whole_tree(program))
    if (!group->commands.empty()) out += zsh_function(*group);
  return out + zsh_command_words(program) +
         "if [[ \"$funcstack[1]\" == _troupe ]]; then _troupe \"$@\"; else compdef _troupe troupe; "
         "fi\n";
}

}  // namespace troupe::cli
