#include "command_line/command_path.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "command_line/foreign_options.hpp"
#include "config/name.hpp"
#include "config/nearest.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const auto* command : commands) names.push_back(command->get_name());
  return names;
}

[[noreturn]] void refuse(const CLI::App& group, const std::string& word) {
  const auto named = config::printable(word);
  const auto names = names_of(commands_of(group));
  if (names.empty()) {
    throw CLI::ValidationError(path_of(group),
                               fmt::format("it has no commands of its own, and so no '{}'", named));
  }
  throw CLI::ValidationError(
      path_of(group), fmt::format("there is no command '{}', only {}{}", named, in_words(names),
                                  config::nearest_in_words(word, names)));
}

[[noreturn]] void ask_for_command(const CLI::App& group) {
  const auto commands = commands_of(group);
  std::size_t width = 0;
  for (const auto* command : commands) width = std::max(width, command->get_name().size());
  std::string text = "which command? There are";
  for (const auto* command : commands)
    text += fmt::format("\n  {:<{}}  {}", command->get_name(), width, command->get_description());
  throw CLI::ValidationError(path_of(group), text);
}

const CLI::App* command_named(const CLI::App& group, const std::string& name) {
  const auto commands = commands_of(group);
  const auto found = std::ranges::find(
      commands, name, [](const auto* command) -> const auto& { return command->get_name(); });
  return found == commands.end() ? nullptr : *found;
}

}  // namespace

std::string path_of(const CLI::App& command) {
  std::string path = command.get_name();
  for (const auto* above = command.get_parent(); above; above = above->get_parent())
    path = above->get_name() + " " + path;
  return path;
}

std::vector<const CLI::App*> commands_of(const CLI::App& group) {
  return group.get_subcommands(std::function<bool(const CLI::App*)>{});
}

const CLI::App& find_command(const CLI::App& group, const std::vector<std::string>& words) {
  const auto* command = &group;
  for (const auto& word : words) {
    const auto* const next = command_named(*command, word);
    if (!next) refuse(*command, word);
    command = next;
  }
  return *command;
}

const CLI::App& deepest_command(const CLI::App& app, const std::vector<std::string>& words) {
  const auto* command = &app;
  for (const auto& word : words) {
    const auto* const next = command_named(*command, word);
    if (!next) break;
    command = next;
  }
  return *command;
}

std::string unknown_option(const CLI::App& command, const std::string& word) {
  const auto name = word.substr(0, word.find('='));
  const auto options = options_of(command);
  const auto text = fmt::format("there is no option '{}'", config::printable(name));
  const auto instead = instead_of_foreign(command, name);
  if (!instead.empty()) return text + instead;
  return text + config::nearest_in_words(name, options);
}

std::string unknown_option_among(const CLI::App& command, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const bool is_long = word.starts_with("--");
    const bool is_short = !is_long && word.size() > 1 && word.front() == '-' && !is_digit(word[1]);
    if (!is_long && !is_short) continue;
    // The value of a short option may stand in its word.
    const bool is_known = command.get_option_no_throw(word.substr(0, word.find('='))) ||
                          (is_short && command.get_option_no_throw(word.substr(0, 2)));
    if (!is_known) return unknown_option(command, word);
  }
  return {};
}

void require_command(const CLI::App& app, const std::vector<std::string>& words) {
  const auto* group = &app;
  for (const auto& word : words) {
    if (commands_of(*group).empty()) return;
    if (word.starts_with('-')) {
      if (group->get_option_no_throw(word)) return;  // --help and --version need no command
      throw CLI::ValidationError(path_of(*group), unknown_option(*group, word));
    }
    const auto* const next = command_named(*group, word);
    if (!next) refuse(*group, word);
    group = next;
  }
  if (!commands_of(*group).empty()) ask_for_command(*group);
}

}  // namespace troupe::cli
