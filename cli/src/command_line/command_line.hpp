#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace troupe::cli {

/// What one call of `troupe` is about, and what came of it.
struct Invocation {
  std::vector<std::string> behind;  // the first `--` of the command line
  int exit_code = 0;
};

/// The option tree of `troupe`: every command, its options and their help. Nothing runs until it
/// parses arguments; then the command that they name does, and leaves its exit code in
/// `invocation`, which has to outlive the tree.
std::unique_ptr<CLI::App> make_app(Invocation& invocation);

/// Does what the arguments say. -> the exit code of the program.
int run_command_line(int argc, char** argv);

}  // namespace troupe::cli
