#include "command_line/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "command_line/command_path.hpp"
#include "command_line/exit_codes.hpp"
#include "command_line/options/add_options.hpp"
#include "describe/describe.hpp"
#include "log/log.hpp"
#include "output.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

template <class Arguments>
void add_command(CLI::App& app, Invocation& invocation, const char* name, const char* purpose,
                 int (*run)(const Arguments&), Arguments defaults = {}) {
  auto arguments = std::make_shared<Arguments>(std::move(defaults));
  auto* command = app.add_subcommand(name, purpose);
  add_options(*command, *arguments);
  command->callback([run, arguments, &invocation] { invocation.exit_code = run(*arguments); });
}

/// One that starts a program, which stands behind its options.
template <class Arguments>
void add_starter(CLI::App& app, Invocation& invocation, const char* name, const char* purpose,
                 int (*run)(const Arguments&), Arguments defaults = {}) {
  auto arguments = std::make_shared<Arguments>(std::move(defaults));
  auto* command = app.add_subcommand(name, purpose);
  add_options(*command, *arguments);
  command->callback([run, command, arguments, &invocation] {
    arguments->program = program_of(*command, invocation.behind);
    invocation.exit_code = run(*arguments);
  });
}

/// A name for several commands, which stand behind it.
CLI::App* add_group(CLI::App& app, const char* name, const char* purpose) {
  auto* group = app.add_subcommand(name, purpose);
  group->require_subcommand(1);
  group->footer(footer(
      fmt::format("`{} COMMAND --help` has the options of a command.", path_of(*group)), name));
  return group;
}

void add_job(CLI::App& app, Invocation& invocation) {
  auto* job = add_group(app, "job", "Programs that run on the cluster by themselves.");
  add_starter<JobArguments>(*job, invocation, "submit",
                            "Start a program that outlives this terminal.", run_job,
                            {.what = "submit"});
  const auto add = [&](const char* what, const char* purpose) {
    add_command<JobArguments>(*job, invocation, what, purpose, run_job, {.what = what});
  };
  add("list", "All jobs, and how they are or ended.");
  add("status", "How one job is or ended; ends as its program did.");
  add("logs", "What a job's program has printed.");
  add("stop", "End a job's program: SIGTERM, and SIGKILL after a grace.");
  add("forget", "End a job, and list it no more.");
}

#ifdef TROUPE_WITH_TUNE
void add_tune(CLI::App& app, Invocation& invocation) {
  auto* tune = add_group(app, "tune", "Search the best settings of any program.");
  const auto add = [&](const char* what, const char* purpose) {
    add_command<TuneArguments>(*tune, invocation, what, purpose, run_tune, {.what = what});
  };
  add("run", "Run a sweep: its results go to a folder of their own.");
  add("resume", "Go on with the last run of a sweep, whatever ended it.");
  add("check", "Say whether a sweep can be, and what it would run.");
  add("show", "What a run has come to: one that is over, was killed, or goes on now.");
  add("report", "Write a run as one HTML page, with its curves, fields and rungs.");
}
#endif

/// Throws, with what there is, where the words name no command.
const CLI::App& command_of(const CLI::App& app, std::vector<std::string>& words) {
  words = CLI::detail::split_up(joined(words, " "));
  return find_command(app, words);
}

void show_man_page(const CLI::App& app, std::vector<std::string> words) {
  command_of(app, words);
  show_page(man_page(describe(app), joined(words, " ")));
}

void show_help(const CLI::App& app, std::vector<std::string> words) {
  const auto& command = command_of(app, words);
  // App::help() would be that of the command that was called, which is this one.
  say_all(
      command.get_formatter()->make_help(&command, path_of(command), CLI::AppFormatMode::Normal));
}

/// What the tree tells of itself; added last.
void add_descriptions(CLI::App& app) {
  auto help = std::make_shared<HelpArguments>();
  auto* helps = app.add_subcommand("help", "Print the help of a command, or its manual page.");
  add_options(*helps, *help);
  helps->callback([&app, help] {
    help->as_page ? show_man_page(app, help->command) : show_help(app, help->command);
  });
  auto completion = std::make_shared<CompletionArguments>();
  auto* command =
      app.add_subcommand("completion", "Print a script that completes words for a shell.");
  add_options(*command, *completion);
  command->callback(
      [&app, completion] { say_all(completion_script(describe(app), completion->shell)); });
  auto man = std::make_shared<ManArguments>();
  command = app.add_subcommand("man", "Show a manual page, or print it for man(1).");
  add_options(*command, *man);
  command->callback([&app, man] {
    if (!man->folder.empty()) return write_man_pages(describe(app), man->folder);
    show_man_page(app, man->command);
  });
}

/// CLI11 would say that WHAT is required, and not what that is, nor which words it may be.
std::string missing_option(const CLI::App& command, const std::string& why) {
  for (const auto* option : command.get_options()) {
    if (why != option->get_name() + " is required") continue;
    const auto type = option->get_type_name();
    const auto choices = type.find('{');
    return fmt::format("{}: {}{}", why, option->get_description(),
                       choices == type.npos ? "" : ", one of " + type.substr(choices));
  }
  return why;
}

/// CLI11 would not say which command was wrong, and whose help to ask for.
std::string failure_message(const CLI::App& command, const std::string& why) {
  const auto path = path_of(command);
  const bool says_whose = why.starts_with("troupe");
  return fmt::format("{}{}\n`{} --help` has more.\n", says_whose ? "" : path + ": ", why, path);
}

}  // namespace

std::unique_ptr<CLI::App> make_app(Invocation& invocation) {
  auto app = std::make_unique<CLI::App>(
      "Troupe: actors, tasks, gangs and sweeps for C++ programs, on one machine or many.",
      "troupe");
  app->set_version_flag("--version", std::string("troupe ") + kVersion, "Print the version");
  app->require_subcommand(1);
  app->footer(footer("`troupe COMMAND --help` has the options of a command.", ""));
  add_command(*app, invocation, "head", "Start a cluster: its head, and a node on this machine.",
              run_head);
  add_command(*app, invocation, "worker", "Add this machine to a cluster.", run_worker);
  add_starter(*app, invocation, "run", "Run any program as a gang of ranks.", run_run);
#ifdef TROUPE_WITH_TUNE
  add_tune(*app, invocation);
#endif
  add_job(*app, invocation);
  add_command(*app, invocation, "status",
              "Nodes and who holds them, jobs, actors, and what waits with the reason.",
              run_status);
  add_command(*app, invocation, "list",
              "Nodes, actors, tasks, gangs, objects, stores or jobs, a line for each; filtered.",
              run_list);
  add_command(*app, invocation, "logs",
              "What worker processes have printed: of a job, an actor, a process.", run_logs);
  add_command(*app, invocation, "timeline",
              "What worker processes have run, when and for whom, as a trace for Perfetto.",
              run_timeline);
  add_command(*app, invocation, "doctor",
              "Look for what is wrong on this machine, and with its cluster.", run_doctor);
  add_command(*app, invocation, "stop",
              "End this cluster, and no other: its jobs, its nodes, its head.", run_stop);
  add_descriptions(*app);
  return app;
}

int run_command_line(int argc, char** argv) {
  log::to_stderr();
  try {
    Invocation invocation;
    // CLI11 would take what stands behind `--` for arguments of the command.
    char** const end = argv + argc;
    char** const dashes =
        std::find_if(argv, end, [](const char* text) { return std::string_view(text) == "--"; });
    invocation.behind.assign(dashes == end ? end : dashes + 1, end);
    argc = static_cast<int>(dashes - argv);
    const auto app = make_app(invocation);
    const std::vector<std::string> words(argv + 1, argv + argc);
    app->failure_message([&words](const CLI::App* root, const CLI::Error& error) {
      const auto& command = deepest_command(*root, words);
      // CLI11 would name all that is left over, from behind.
      const bool has_extras =
          error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
      const auto unknown = has_extras ? unknown_option_among(command, words) : std::string();
      return failure_message(command,
                             unknown.empty() ? missing_option(command, error.what()) : unknown);
    });
    try {
      require_command(*app, words);
      app->parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      // Also what was asked for, as --help.
      invocation.exit_code = app->exit(error) == 0 ? 0 : 2;
      flush_output();
    }
    return invocation.exit_code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "troupe: %s\n", error.what());
    return 1;
  }
}

}  // namespace troupe::cli
