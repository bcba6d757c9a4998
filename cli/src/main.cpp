#include <cstdio>
#include <exception>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "commands.hpp"
#include "options.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Troupe: actors, tasks, gangs and sweeps for C++ programs, on one machine or many."};
  app.set_version_flag("--version", std::string("troupe ") + troupe::cli::kVersion);
  app.require_subcommand(1);
  spdlog::set_default_logger(spdlog::stderr_logger_st("troupe"));
  int exit_code = 0;
  troupe::cli::add_head_command(app, exit_code);
  troupe::cli::add_worker_command(app, exit_code);
  troupe::cli::add_status_command(app, exit_code);
  troupe::cli::add_stop_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "troupe: %s\n", error.what());
    return 1;
  }
  return exit_code;
}
