#include <cstdio>
#include <exception>

#include "commands.hpp"
#include "log/log.hpp"
#include "options.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Troupe: actors, tasks, gangs and sweeps for C++ programs, on one machine or many."};
  app.set_version_flag("--version", std::string("troupe ") + troupe::cli::kVersion);
  app.require_subcommand(1);
  troupe::log::to_stderr();
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
