#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "command_line/exit_codes.hpp"
#include "describe/describe.hpp"
#include "options.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

/// As roff prints it and nothing else: a backslash would begin a request, and so would a period or
/// an apostrophe at the start of a line; a hyphen would be one for words, which cannot be pasted.
std::string roff(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      if ((letter == '.' || letter == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += letter;
    }
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }
std::string tagged(const std::string& tag, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", tag, text);
}

std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

std::string option_entry(const OptionText& option, bool positional) {
  std::vector<std::string> names;
  for (const auto& name : option.names) names.push_back(positional ? italic(name) : bold(name));
  auto tag = joined(names, ", ");
  if (!positional && !option.placeholder.empty()) tag += " " + italic(option.placeholder);
  auto about = sentence(option.about);
  if (positional && !option.choices.empty())
    about += fmt::format(" One of {}.", in_words(option.choices));
  if (!option.accepts.empty()) about += fmt::format(" Accepts: {}.", option.accepts);
  if (!option.by_default.empty()) about += fmt::format(" Default: {}.", option.by_default);
  return tagged(tag, roff(about));
}

/// As it is laid out, line by line.
std::string notes_section(const std::string& notes) {
  return notes.empty() ? std::string() : fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", roff(notes));
}

std::string exit_section(const std::string& command) {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, means] : exit_codes(command))
    text += tagged(bold(code), roff(sentence(means)));
  return text;
}

/// `title`: "troupe-run".
std::string heading(const std::string& title, const std::string& about) {
  auto upper = title;
  std::ranges::transform(upper, upper.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  auto purpose = about;
  if (!purpose.empty() && purpose.back() == '.') purpose.pop_back();
  return fmt::format(
      ".\\\" Made by `troupe man` from the program's options.\n.TH {} 1 \"\" \"troupe {}\" "
      "\"Troupe\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n",
      roff(upper), kVersion, roff(title), roff(purpose));
}

std::string see_also(const std::vector<std::string>& pages) {
  std::vector<std::string> names;
  for (const auto& page : pages) names.push_back(bold(page) + "(1)");
  return fmt::format(".SH SEE ALSO\n{}\n", joined(names, ",\n"));
}

std::string options_section(const CommandText& command) {
  std::string text;
  if (!command.positionals.empty()) text += ".SH ARGUMENTS\n";
  for (const auto& option : command.positionals) text += option_entry(option, true);
  text += ".SH OPTIONS\n";
  for (const auto& option : command.options) text += option_entry(option, false);
  return text;
}

/// "troupe-job-submit".
std::string page_name(const CommandText& program, const std::string& path) {
  auto name = program.name + (path.empty() ? "" : "-" + path);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string synopsis(const CommandText& program, const CommandText& command) {
  auto text = ".SH SYNOPSIS\n" + bold(program.name);
  if (!command.path.empty()) text += " " + bold(command.path);
  if (!command.commands.empty())
    return text + fmt::format(" {} [{}]...\n", italic("COMMAND"), italic("OPTION"));
  text += fmt::format(" [{}]", italic("OPTIONS"));
  for (const auto& option : command.positionals) {
    const auto name = italic(option.names.front());
    text += option.required ? " " + name : " [" + name + "]";
    if (option.repeated) text += "...";
  }
  if (command.takes_program)
    text += fmt::format(" {} {} [{}]...", bold("--"), italic("PROGRAM"), italic("ARGUMENT"));
  return text + '\n';
}

std::string commands_section(const CommandText& group) {
  if (group.commands.empty()) return {};
  std::string text = ".SH COMMANDS\n";
  for (const auto& command : group.commands)
    text += tagged(bold(command.name), roff(command.about));
  return text;
}

std::string environment_section() {
  return ".SH ENVIRONMENT\n" +
         tagged(bold("TROUPE_ADDRESS"), "The head, where no option names it: HOST:PORT.") +
         tagged(bold("TROUPE_TOKEN"), "The cluster's secret, where no file is named.") +
         tagged(bold("TROUPE_TOKEN_FILE"), "The file with it, where neither is there.") +
         tagged(bold("XDG_STATE_HOME"), roff("Troupe keeps its files in the folder troupe below "
                                             "it. Default: ~/.local/state."));
}

/// Those of the program and of the groups that it is in, and of its own commands.
std::vector<std::string> related_pages(const CommandText& program, const CommandText& command) {
  std::vector<std::string> pages;
  for (const auto* other : whole_tree(program)) {
    const bool is_above = other->path.empty() || command.path.starts_with(other->path + " ");
    if (is_above && other->path != command.path) pages.push_back(page_name(program, other->path));
  }
  for (const auto& below : command.commands) pages.push_back(page_name(program, below.path));
  return pages;
}

std::string page(const CommandText& program, const CommandText& command) {
  const bool is_program = command.path.empty();
  return heading(
             page_name(program, command.path),
             is_program ? "a runtime of actors, tasks, gangs and sweeps for C++" : command.about) +
         synopsis(program, command) + fmt::format(".SH DESCRIPTION\n{}\n", roff(command.about)) +
         commands_section(command) + options_section(command) + notes_section(command.notes) +
         exit_section(command.path) + (is_program ? environment_section() : "") +
         see_also(related_pages(program, command));
}

}  // namespace

std::string man_page(const CommandText& program, const std::string& path) {
  for (const auto* command : whole_tree(program)) {
    if (command->path == path) return page(program, *command);
  }
  throw std::invalid_argument("there is no command " + path);
}

void write_man_pages(const CommandText& program, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const auto* command : whole_tree(program)) {
    const auto file = fmt::format("{}/{}.1", folder, page_name(program, command->path));
    std::ofstream out(file);
    out << page(program, *command) << std::flush;
    if (!out) {
      throw std::runtime_error(
          fmt::format("cannot write {}: name a folder that can be written, with room", file));
    }
  }
}

}  // namespace troupe::cli
