#pragma once

#include <cstdint>
#include <string>

#include "options.hpp"

/// What each command is told, and the command. Each returns its exit code, and throws what could
/// not be done.
namespace troupe::cli {

struct HeadArguments {
  std::string host = "127.0.0.1";
  std::uint16_t port = kDefaultPort;
  std::string state_directory;
  std::string token_file;
  double rejoin_patience = 60;  // seconds
  bool no_node = false;
  NodeArguments node;
};
int run_head(const HeadArguments& arguments);

struct WorkerArguments {
  std::string head;
  std::string token_file;
  NodeArguments node;
};
int run_worker(const WorkerArguments& arguments);

struct StatusArguments {
  std::string head;
  std::string token_file;
  bool as_json = false;
};
int run_status(const StatusArguments& arguments);

struct LogsArguments {
  std::string head;
  std::string token_file;
  std::string what;   // "job", "actor" or "process"
  std::string which;  // its number, or an actor's name
  bool follow = false;
};
int run_logs(const LogsArguments& arguments);

struct StopArguments {
  std::string head;
  std::string token_file;
};
int run_stop(const StopArguments& arguments);

}  // namespace troupe::cli
