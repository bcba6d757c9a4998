#include "command_line/exit_codes.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::cli {
namespace {

constexpr const char* kWrongArguments = "the arguments are wrong; standard error says which";

std::vector<ExitCode> codes_of_run() {
  return {{"0", "every rank has ended with 0"},
          {"N", "the exit code of the rank that failed first; 1 where its node was lost"},
          {"128+N", "that rank was ended by signal N, or `troupe run` was told to end by it"},
          {"2", "the arguments are wrong; it may also be a rank's own"},
          {"124", "--timeout is over"},
          {"125", "Troupe could not run it; standard error says why"},
          {"126", "the program cannot be executed"},
          {"127", "there is no such program"}};
}

std::vector<ExitCode> codes_of_submit() {
  return {{"0", "the job has been started; with --wait: its program has ended with 0"},
          {"1", "it could not be started, or not waited for; standard error says why"},
          {"2", kWrongArguments},
          {"N", "with --wait: the exit code of the program, which may be 1 or 2 too"},
          {"128+N", "with --wait: the program was ended by signal N"},
          {"126", "the program cannot be executed on its node; without --wait: known at once"},
          {"127", "there is no such program on its node; without --wait: known at once"}};
}

std::vector<ExitCode> codes_of_job_status() {
  return {{"0", "the job runs, waits, or its program has ended with 0"},
          {"1", "there is no such job, it was lost, it does not answer, or it cannot be asked"},
          {"2", kWrongArguments},
          {"N", "the exit code of the program that has ended, which may be 1 or 2 too"},
          {"128+N", "the program was ended by signal N"}};
}

std::vector<ExitCode> codes_of_program() {
  return {{"0", "done"},
          {"1",
           "it could not be done, and standard error says why; of `troupe doctor`: there is a "
           "problem"},
          {"2", kWrongArguments},
          {"other",
           "of `troupe run`, `troupe job submit --wait` and `troupe job status`, which have their "
           "program's, and of `troupe tune` that was cut short"}};
}

}  // namespace

std::vector<ExitCode> exit_codes(std::string_view command) {
  if (command.empty()) return codes_of_program();
  if (command == "run") return codes_of_run();
  if (command == "job submit") return codes_of_submit();
  if (command == "job status") return codes_of_job_status();
  if (command == "tune run" || command == "tune resume") {
    return {{"0", "a best trial was found"},
            {"1", "none was, or the sweep could not be run; standard error says why"},
            {"2", kWrongArguments},
            {"125", "its cluster ended before it did"},
            {"128+N", "it was told to end by signal N: 130 for Ctrl-C, 143 for SIGTERM or SIGHUP"}};
  }
  if (command == "tune check") {
    return {{"0", "the sweep can be run"},
            {"1", "it cannot; standard error says why"},
            {"2", kWrongArguments}};
  }
  if (command == "tune show" || command == "tune report") {
    return {{"0", "done"},
            {"1", "there is no such run, or it cannot be read; standard error says why"},
            {"2", kWrongArguments}};
  }
  if (command == "doctor") {
    return {{"0", "nothing that was looked at is a problem; there may be notes"},
            {"1", "there is a problem, or the findings could not be printed"},
            {"2", kWrongArguments}};
  }
  if (command == "logs" || command == "job logs" || command == "timeline" || command == "list") {
    return {
        {"0", "done"},
        {"1",
         "the command could not be done, or a node has not answered and what it has is missing; "
         "standard error says which"},
        {"2", kWrongArguments}};
  }
  if (command == "head" || command == "worker") {
    return {{"0", "it was stopped: by `troupe stop`, SIGINT or SIGTERM"},
            {"1", "it could not start, or not go on; standard error says why"},
            {"2", kWrongArguments}};
  }
  if (command == "job") {
    return {{"0", "done"},
            {"1", "it could not be done; standard error says why"},
            {"2", kWrongArguments},
            {"other", "of `troupe job submit --wait` and `status`, which have its program's"}};
  }
  return {{"0", "done"},
          {"1", "it could not be done; standard error says why"},
          {"2", kWrongArguments}};
}

std::string footer(const std::string& notes, std::string_view command) {
  auto text = notes.empty() ? std::string() : notes + "\n\n";
  text += kExitTitle;
  const auto codes = exit_codes(command);
  std::size_t width = 0;
  for (const auto& [code, means] : codes) width = std::max(width, code.size());
  for (const auto& [code, means] : codes) text += fmt::format("\n  {:<{}}  {}", code, width, means);
  return text;
}

}  // namespace troupe::cli
