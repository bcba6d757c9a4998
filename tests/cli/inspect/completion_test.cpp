#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "inspect/texts.hpp"

using namespace troupe::test;

namespace {

using Words = std::set<std::string>;

/// The script of a shell, and a folder that has a file and a folder.
struct Script {
  TemporaryFolder folder;
  const std::string file;
  explicit Script(const std::string& shell_name, const std::string& name)
      : file(folder.path() + "/" + name) {
    const auto script = run({TROUPE_PROGRAM, "completion", shell_name});
    REQUIRE(script.exit_code == 0);
    std::ofstream(file) << script.output;
    shell("mkdir -p " + folder.path() + "/at/inner; touch " + folder.path() + "/at/token");
  }
};

/// What bash offers for the last of these words, which are those that bash makes of a line.
Words offered_by_bash(const Script& script, const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += " '" + word + "'";
  return words_of(shell("cd " + script.folder.path() + "/at && bash --norc -c '. " + script.file +
                        "; words=(\"$@\"); COMP_WORDS=(troupe \"${words[@]}\"); "
                        "COMP_CWORD=${#words[@]}; $(complete -p troupe | sed \"s/.*-F "
                        "\\([^ ]*\\).*/\\1/\"); printf \"%s\\n\" \"${COMPREPLY[@]}\"' bash" +
                        line));
}

const Words kStrategies{"pack", "spread", "strict-pack", "strict-spread"};
const Words kKinds{"nodes", "actors", "tasks", "gangs", "objects", "stores", "jobs"};

Words names_in(const std::string& group) {
  const auto names = commands_of(group);
  return {names.begin(), names.end()};
}

/// The words behind `troupe`: of a command, and more.
std::vector<std::string> words_behind(const std::string& path, const std::string& more) {
  auto words = command_line(path, {more});
  words.erase(words.begin());
  return words;
}

}  // namespace

TEST_CASE("bash completes commands, options and their values", "[cli][completion]") {
  const Script script("bash", "troupe");
  const auto offered = [&](const std::vector<std::string>& words) {
    return offered_by_bash(script, words);
  };
  CHECK(offered({""}) == names_in(""));
  CHECK(offered({"st"}) == Words{"status", "stop"});
  const auto commands = all_commands();
  REQUIRE(commands.size() > 15);
  for (const auto& command : commands) {
    INFO(command);
    CHECK(offered(words_behind(command, "--")) == options_of(command));
  }
  CHECK(offered({"list", ""}) == kKinds);
  CHECK(offered({"list", "--json", "no"}) == Words{"nodes"});
  CHECK(offered({"list", "nodes", ""}).empty());
  CHECK(offered({"completion", ""}) == Words{"bash", "fish", "zsh"});
  CHECK(offered({"man", ""}) == names_in(""));
}

TEST_CASE("bash completes values behind =, and files and folders", "[cli][completion]") {
  const Script script("bash", "troupe");
  const auto offered = [&](const std::vector<std::string>& words) {
    return offered_by_bash(script, words);
  };
  CHECK(offered({"run", "--strategy", ""}) == kStrategies);
  CHECK(offered({"run", "--strategy", "=", "strict"}) == Words{"strict-pack", "strict-spread"});
  CHECK(offered({"run", "--strategy", "="}) == kStrategies);
  CHECK(offered({"run", "-n", ""}).empty());
  CHECK(offered({"status", "--token-file", ""}) == Words{"inner", "token"});
  CHECK(offered({"run", "--workdir", ""}) == Words{"inner"});
  // bash makes words of = and : within values.
  CHECK(offered({"list", "--filter", "state", "=", ""}).empty());
  CHECK(offered({"list", "--filter", "state", "=", "pending", "no"}) == Words{"nodes"});
  CHECK(offered({"list", "--head", "a", ":", "1", "no"}) == Words{"nodes"});
}

TEST_CASE("bash completes the commands of a group", "[cli][completion]") {
  const Script script("bash", "troupe");
  const auto offered = [&](const std::vector<std::string>& words) {
    return offered_by_bash(script, words);
  };
  for (const auto& group : all_groups()) {
    CHECK(offered({group, ""}) == names_in(group));
    CHECK(offered({"man", group, ""}) == names_in(group));
  }
  CHECK(offered({"job", "st"}) == Words{"status", "stop"});
  CHECK(offered({"job", "nonsense", ""}).empty());
  CHECK(offered({"nonsense", "job", ""}).empty());
  CHECK(offered({"job", "stop", ""}).empty());
  CHECK(offered({"man", "job", "submit", ""}).empty());
  CHECK(offered({"job", "submit", "--workdir", ""}) == Words{"inner"});
  if (has_tune()) {
    CHECK(offered({"tune", "run", ""}) == Words{"inner", "token"});
    CHECK(offered({"tune", "check", "--help", "to"}) == Words{"token"});
  }
  CHECK(offered({"job", "submit", "--", "mkdi"}).contains("mkdir"));
  CHECK(offered({"job", "submit", "--name", "x", "mkdi"}).contains("mkdir"));
  CHECK(offered({"job", "submit", "--wait", "ls", "to"}) == Words{"token"});
}

TEST_CASE("every option of every command is in the script of each shell", "[cli][completion]") {
  for (const std::string name : {"bash", "fish", "zsh"}) {
    const auto script = run({TROUPE_PROGRAM, "completion", name}).output;
    for (const auto& command : all_commands()) {
      INFO(name << ": " << command);
      const auto options = options_of(command);
      CHECK(options.contains("--help"));
      CHECK_THAT(script, Catch::Contains(command.substr(command.rfind(' ') + 1)));
      for (const auto& option : options)
        CHECK_THAT(script, Catch::Contains(name == "fish" ? "-l " + option.substr(2) : option));
    }
  }
}

TEST_CASE("bash completes the program that troupe run is to run", "[cli][completion]") {
  const Script script("bash", "troupe");
  const auto offered = [&](const std::vector<std::string>& words) {
    return offered_by_bash(script, words);
  };
  CHECK(offered({"run", "-n", "2", "mkdi"}).contains("mkdir"));
  CHECK(offered({"run", "--", "mkdi"}).contains("mkdir"));
  CHECK(offered({"run", "-n", "2", "ls", "to"}) == Words{"token"});
  CHECK(offered({"run", "ls", "--tee"}).empty());  // which is that program's own affair
}

TEST_CASE("fish completes commands, options and their values", "[cli][completion]") {
  if (!is_installed("fish")) {
    WARN("skipped: fish is not installed");
    return;
  }
  const Script script("fish", "troupe.fish");
  const auto offered = [&](const std::string& line) {
    Words words;
    const auto printed =
        shell("cd " + script.folder.path() + "/at && fish --no-config -c 'source " + script.file +
              "; complete -C \"troupe " + line + "\"'");
    for (const auto& printed_line : lines_of(printed))
      words.insert(printed_line.substr(0, printed_line.find('\t')));
    return words;
  };
  CHECK(offered("") == names_in(""));
  CHECK(offered("list ") == kKinds);
  CHECK(offered("list nodes ").empty());
  CHECK(offered("run --strategy ") == kStrategies);
  CHECK(offered("status --token-file ") == Words{"inner/", "token"});
  CHECK(offered("run -- mkdi").contains("mkdir"));
  for (const auto& command : all_commands()) {
    INFO(command);
    CHECK(offered(command + " --") == options_of(command));
  }
  CHECK(offered("list --filter state=pending ") == kKinds);
  CHECK(offered("run -n 2 mkdi").contains("mkdir"));
  for (const auto& group : all_groups()) {
    CHECK(offered(group + " ") == names_in(group));
    CHECK(offered("man " + group + " ") == names_in(group));
  }
  CHECK(offered("job nonsense ").empty());
  CHECK(offered("job stop ").empty());
  CHECK(offered("job submit --workdir ") == Words{"inner/"});
  if (has_tune()) CHECK(offered("tune run ") == Words{"inner/", "token"});
  CHECK(offered("job submit --name x -- mkdi").contains("mkdir"));
  CHECK(offered("job submit --name x mkdi").contains("mkdir"));
}

TEST_CASE("zsh completes commands, options and their values", "[cli][completion]") {
  if (!is_installed("zsh")) {
    WARN("skipped: zsh is not installed");
    return;
  }
  const Script script("zsh", "_troupe");
  const auto look = script.folder.path() + "/look.zsh";
  // A shell of its own behind a pseudo terminal, whose compadd prints what it is to offer. It reads
  // that from a file, and is typed to only once its line editor listens, so that no echo of what was
  // typed is taken for what it prints.
  std::filesystem::create_directory(script.folder.path() + "/rc");
  std::ofstream(script.folder.path() + "/rc/.zshrc") << R"(PS1=
fpath=("$ZDOTDIR/.." $fpath); autoload -U compinit; compinit -u -D
compadd() { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  typeset -a hits; builtin compadd -A hits "$@"; for hit in $hits; do print -r "hit $hit"; done; (( $#hits )) }
done-looking() { print end-of-hits }; zle -N done-looking; bindkey "^X" done-looking
bindkey "^I" complete-word
zle-line-init() { print ready-now }; zle -N zle-line-init
)";
  std::ofstream(look) << R"(zmodload zsh/zpty
export ZDOTDIR="$1/rc"
zpty shell zsh -d -i
zpty -r shell printed '*ready-now*'
zpty -w -n shell "troupe $2"$'\t'
zpty -w -n shell $'\x18'
zpty -r shell printed '*end-of-hits*'
for line in "${(@f)printed}"; do line="${line//$'\r'/}"; [[ $line == *hit\ * ]] && print -r -- "${line##*hit }"; done
exit 0
)";
  const auto offered = [&](const std::string& line) {
    return words_of(shell("cd " + script.folder.path() + "/at && TERM=dumb zsh -f " + look + " " +
                          script.folder.path() + " '" + line + "'"));
  };
  CHECK(offered("") == names_in(""));
  CHECK(offered("list ") == kKinds);
  CHECK(offered("run --strategy ") == kStrategies);
  CHECK(offered("run --strategy=") == kStrategies);
  CHECK(offered("stop --") == options_of("stop"));
  for (const auto& group : all_groups()) {
    CHECK(offered(group + " ") == names_in(group));
    CHECK(offered("man " + group + " ") == names_in(group));
  }
  CHECK(offered("job nonsense ").empty());
  CHECK(offered("job stop --") == options_of("job stop"));
  CHECK(offered("job submit --workdir ").contains("inner"));
  if (has_tune()) CHECK(offered("tune run ") == Words{"inner", "token"});
  CHECK(offered("job submit --name x -- mkdi").contains("mkdir"));
}
