#include <fmt/format.h>

#include "describe/describe.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

using Value = OptionText::Value;

constexpr const char* kBashHead = R"(# Words of `troupe` for bash, made by `troupe completion bash`.
_troupe() {
  local command="" given="" option="" rest="" word i begin=0 positionals=0 options="" words="" files="" commands=""
  local current="${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  # What stands before the word: the command and the groups it is in, its positional arguments, and the option whose
  # value it is. bash makes a word of each `=` and `:`, between an option and its value and within values.
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if [[ $word == "=" && -n $option ]]; then continue; fi
    if [[ $word == [=:] ]]; then rest="$word"; continue; fi
    if [[ -n $rest ]]; then rest=""; continue; fi
    if [[ -n $option ]]; then option=""; continue; fi
    if [[ $word == -- ]]; then begin=$((i + 1)); break; fi
    if [[ $word == -* ]]; then
      _troupe_takes_value "$command" "$word" && option="$word"
      continue
    fi
    _troupe_commands "$command"
    if [[ -n $commands ]]; then command="${command:+$command }$word"; continue; fi
    if _troupe_takes_program "$command"; then begin=$i; break; fi
    given="${given:+$given }$word"
    positionals=$((positionals + 1))
  done
  if [[ $begin -gt 0 ]] && _troupe_takes_program "$command"; then
    if declare -F _command_offset > /dev/null; then
      _command_offset "$begin"
    elif ((begin == COMP_CWORD)); then
      COMPREPLY=($(compgen -c -- "$current"))
    else
      compopt -o filenames 2> /dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
    return
  fi
  if [[ $current == "=" && -n $option ]]; then current=""; fi
  if [[ -n $rest || $current == [=:] ]]; then return; fi
)";

constexpr const char* kBashTail = R"(  case "$files" in
    files) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    folders) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    commands) COMPREPLY=($(compgen -c -- "$current")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _troupe troupe
)";

/// "case" patterns of this option of that command: "job submit:--name"|"job submit:-n".
std::string patterns(const CommandText& command, const OptionText& option) {
  std::vector<std::string> all;
  for (const auto& name : option.names) all.push_back(fmt::format("\"{}:{}\"", command.path, name));
  return joined(all, "|");
}

std::string value_words(const OptionText& option) {
  switch (option.value) {
    case Value::File:
      return "files=files";
    case Value::Folder:
      return "files=folders";
    case Value::CommandWord:
      return "_troupe_commands \"$given\"; words=\"$commands\"";
    case Value::Choice:
      return fmt::format("words=\"{}\"", joined(option.choices, " "));
    default:
      return {};
  }
}

std::string values_case(const CommandText& program) {
  std::string out = "  case \"$command:$option\" in\n";
  for (const auto* command : whole_tree(program)) {
    for (const auto& option : command->options) {
      const auto words = value_words(option);
      if (!words.empty()) out += fmt::format("    {}) {} ;;\n", patterns(*command, option), words);
    }
  }
  return out + "  esac\n";
}

std::string option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return joined(names, " ");
}

/// Where no option waits for its value.
std::string words_case(const CommandText& program) {
  std::string out =
      "    _troupe_commands \"$command\"\n    words=\"$commands\"\n    case \"$command\" in\n";
  for (const auto* command : whole_tree(program)) {
    out += fmt::format("      \"{}\") options=\"{}\"", command->path, option_names(*command));
    if (command->takes_program) out += " files=commands";
    out += " ;;\n";
  }
  out += "    esac\n    case \"$command:$positionals\" in\n";
  for (const auto* command : whole_tree(program)) {
    for (std::size_t i = 0; i < command->positionals.size(); ++i) {
      const auto& option = command->positionals[i];
      const auto words = value_words(option);
      if (words.empty()) continue;
      const auto place = option.repeated ? "\"*" : fmt::format("{}\"", i);
      out += fmt::format("      \"{}:{}) {} ;;\n", command->path, place, words);
    }
  }
  return out + "    esac\n    if [[ $current == -* ]]; then words=\"$options\" files=\"\"; fi\n";
}

/// Sets `commands` to those of the group that its argument names; to none where it is no group.
std::string commands_function(const CommandText& program) {
  std::string out = "_troupe_commands() {\n  case \"$1\" in\n";
  for (const auto* group : whole_tree(program)) {
    if (group->commands.empty()) continue;
    out += fmt::format("    \"{}\") commands=\"{}\" ;;\n", group->path,
                       joined(command_names(*group), " "));
  }
  return out + "    *) commands=\"\" ;;\n  esac\n}\n";
}

std::string takes_value_function(const CommandText& program) {
  std::vector<std::string> all;
  for (const auto* command : whole_tree(program)) {
    for (const auto& option : command->options)
      if (option.value != Value::None) all.push_back(patterns(*command, option));
  }
  return fmt::format(
      "_troupe_takes_value() {{\n  case \"$1:$2\" in\n    {}) return 0 ;;\n  esac\n  return "
      "1\n}}\n",
      joined(all, "|\\\n    "));
}

std::string takes_program_function(const CommandText& program) {
  std::vector<std::string> all;
  for (const auto* command : whole_tree(program))
    if (command->takes_program) all.push_back(fmt::format("\"{}\"", command->path));
  return fmt::format(
      "_troupe_takes_program() {{\n  case \"$1\" in {}) return 0 ;; esac\n  return "
      "1\n}}\n",
      joined(all, "|"));
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  return kBashHead + std::string("  if [[ -n $option ]]; then\n") + values_case(program) +
         "  else\n" + words_case(program) + "  fi\n" + kBashTail + commands_function(program) +
         takes_value_function(program) + takes_program_function(program);
}

}  // namespace troupe::cli
