#pragma once

#include <CLI/CLI.hpp>

namespace troupe::cli {

/// Each adds its subcommand and options to `app`. Its exit code goes to `exit_code` when it has run.
void add_head_command(CLI::App& app, int& exit_code);
void add_worker_command(CLI::App& app, int& exit_code);
void add_status_command(CLI::App& app, int& exit_code);
void add_stop_command(CLI::App& app, int& exit_code);

}  // namespace troupe::cli
