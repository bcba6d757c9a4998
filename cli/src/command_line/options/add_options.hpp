#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.hpp"

/// The options of each command, in a file for each.
namespace troupe::cli {

void add_options(CLI::App& command, HeadArguments& arguments);
void add_options(CLI::App& command, WorkerArguments& arguments);
void add_options(CLI::App& command, RunArguments& arguments);
/// Of the command of `troupe tune` that `arguments.what` names; of `troupe job` likewise.
void add_options(CLI::App& command, TuneArguments& arguments);
void add_options(CLI::App& command, JobArguments& arguments);
void add_options(CLI::App& command, StatusArguments& arguments);
void add_options(CLI::App& command, ListArguments& arguments);
void add_options(CLI::App& command, LogsArguments& arguments);
void add_options(CLI::App& command, TimelineArguments& arguments);
void add_options(CLI::App& command, DoctorArguments& arguments);
void add_options(CLI::App& command, StopArguments& arguments);
void add_options(CLI::App& command, CompletionArguments& arguments);
void add_options(CLI::App& command, HelpArguments& arguments);
void add_options(CLI::App& command, ManArguments& arguments);

/// The program and its arguments that a command like `troupe run` starts: what was parsed no more as
/// options, and what stood behind the first `--`. Throws CLI::ValidationError where there is none.
std::vector<std::string> program_of(const CLI::App& command,
                                    const std::vector<std::string>& behind);

// ---- what several of them share

/// How a node describes itself.
void add_node_options(CLI::App& command, NodeArguments& arguments);
/// Where the head is, and the file with its cluster's secret.
void add_head_options(CLI::App& command, std::string& head, std::string& token_file);
/// The same of commands of drivers: without it TROUPE_ADDRESS names the head, else `otherwise`.
void add_address_options(CLI::App& command, std::string& address, std::string& token_file,
                         const std::string& otherwise = "this machine alone");

/// What stands for a value in help, by which completion knows what to offer.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kFolder = "FOLDER";
inline constexpr const char* kCommandWord = "WORD";  // of those that name a command

}  // namespace troupe::cli
