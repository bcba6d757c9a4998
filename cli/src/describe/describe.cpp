#include "describe/describe.hpp"

#include <algorithm>
#include <stdexcept>

#include "command_line/command_path.hpp"
#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

/// Of "TEXT:{pack,spread}" both; empty where no set of values is named.
std::vector<std::string> choices_in(const std::string& type) {
  const auto begin = type.find('{');
  const auto end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

OptionText::Value value_of(const CLI::Option& option, const OptionText& text) {
  if (option.get_items_expected_max() == 0) return OptionText::Value::None;
  if (!text.choices.empty()) return OptionText::Value::Choice;
  if (text.placeholder == kFile) return OptionText::Value::File;
  if (text.placeholder == kFolder) return OptionText::Value::Folder;
  if (text.placeholder == kCommandWord) return OptionText::Value::CommandWord;
  return OptionText::Value::Text;
}

OptionText describe_option(const CLI::Option& option) {
  OptionText text;
  for (const auto& name : option.get_snames()) text.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_positional()) text.names = {option.get_name(true)};
  text.about = option.get_description();
  text.by_default = option.get_default_str();
  text.required = option.get_required();
  text.repeated = option.get_items_expected_max() > 1;
  const auto type = option.get_type_name();
  text.choices = choices_in(type);
  if (option.get_items_expected_max() > 0) {
    const auto colon = text.choices.empty() && type != "HOST:PORT" ? type.find(':') : type.npos;
    text.placeholder = type.substr(0, colon);
    if (colon != type.npos) text.accepts = type.substr(colon + 1);
    if (!text.choices.empty()) text.placeholder = joined(text.choices, "|");
    if (text.placeholder.empty()) text.placeholder = "VALUE";
  }
  text.value = value_of(option, text);
  return text;
}

CommandText describe_command(const CLI::App& command, const std::string& path) {
  CommandText text;
  text.name = command.get_name();
  text.path = path;
  text.about = command.get_description();
  const auto footer = command.get_footer();
  text.notes = CLI::detail::trim_copy(footer.substr(0, footer.find(kExitTitle)));
  text.takes_program = command.get_prefix_command();
  for (const auto* option : command.get_options()) {
    auto& list = option->get_positional() ? text.positionals : text.options;
    list.push_back(describe_option(*option));
  }
  for (const auto* below : commands_of(command)) {
    const auto name = below->get_name();
    text.commands.push_back(describe_command(*below, path.empty() ? name : path + " " + name));
  }
  return text;
}

}  // namespace

CommandText describe(const CLI::App& app) { return describe_command(app, ""); }

std::vector<const CommandText*> whole_tree(const CommandText& command) {
  std::vector<const CommandText*> all{&command};
  for (const auto& below : command.commands) {
    const auto more = whole_tree(below);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<std::string> command_names(const CommandText& group) {
  std::vector<std::string> names;
  for (const auto& command : group.commands) names.push_back(command.name);
  return names;
}

std::size_t depth(const CommandText& command) {
  if (command.path.empty()) return 0;
  return static_cast<std::size_t>(std::ranges::count(command.path, ' ')) + 1;
}

std::string completion_script(const CommandText& program, const std::string& shell) {
  if (shell == "bash") return bash_completion(program);
  if (shell == "fish") return fish_completion(program);
  if (shell == "zsh") return zsh_completion(program);
  throw std::invalid_argument("there are scripts for bash, fish and zsh, and none for " + shell);
}

}  // namespace troupe::cli
