#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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
  double head_silence =
      std::chrono::duration<double>(node::NodeOptions{}.head_silence).count();  // seconds
  NodeArguments node;
};
int run_worker(const WorkerArguments& arguments);

struct StatusArguments {
  std::string head;
  std::string token_file;
  bool as_json = false;
};
int run_status(const StatusArguments& arguments);

struct ListArguments {
  std::string head;
  std::string token_file;
  std::string what;                  // as kinds() has it
  std::vector<std::string> filters;  // KEY=VALUE
  std::size_t limit = 0;             // rows; 0: the kind's own
  bool as_json = false;
};
int run_list(const ListArguments& arguments);

struct DoctorArguments {
  std::string head;
  std::string token_file;
  bool as_json = false;
};
int run_doctor(const DoctorArguments& arguments);

struct LogsArguments {
  std::string head;
  std::string token_file;
  std::string what;   // "job", "actor" or "process"; or as `which`
  std::string which;  // its number, or an actor's name; empty: `what` stands alone, or is empty too
  std::string job_number = {};  // as --job has it, in place of both
  bool follow = false;
  /// Of `troupe job logs`, whose jobs are actors: its name, and whether its program has ended. Who
  /// calls says how.
  std::string job = {};
  std::function<bool()> job_is_over = {};
};
int run_logs(const LogsArguments& arguments);

struct TimelineArguments {
  std::string head;
  std::string token_file;
  std::string output;     // a file, or "-"
  double last = 0;        // seconds; 0: all that there is
  std::uint64_t job = 0;  // 0: of any
  std::string folder;     // empty: the head is asked
};
int run_timeline(const TimelineArguments& arguments);

struct StopArguments {
  std::string head;
  std::string token_file;
};
int run_stop(const StopArguments& arguments);

struct CompletionArguments {
  std::string shell;
};
struct HelpArguments {
  std::vector<std::string> command;  // its words; none: the program
  bool as_page = false;              // the manual page
};
struct ManArguments {
  std::vector<std::string> command;  // its words; none: the page of the program
  std::string folder;                // for the pages of all; empty: one is printed
};

struct RunArguments {
  std::string address;
  std::string token_file;
  std::string size;  // as -n has it; empty: 1, or per_node on each node
  int per_node = 0;
  double cpus = -1;
  double gpus = -1;
  double memory_gb = 0;
  std::vector<std::string> labels;  // KEY=VALUE
  std::string strategy = "pack";
  int max_restarts = 0;
  std::string grow_after;                // seconds, or launch::kNever; empty: not given
  double timeout = 0;                    // seconds; 0: none
  double grace = 1.5;                    // seconds
  std::vector<std::string> environment;  // NAME=VALUE, or NAME
  bool no_environment = false;
  std::string log_directory;
  bool tee = false;
  bool quiet = false;
  bool isolate_gpus = false;
  std::string workdir;
  std::string attached_file;
  std::string result_file;
  std::string summary_file;
  std::vector<std::string> program;  // and its arguments
};
/// Its exit status is the program's: see launch::launch.
int run_run(const RunArguments& arguments);

struct JobArguments {
  std::string what = {};  // "submit", "list", "status", "logs", "stop" or "forget"
  std::string job = {};   // its name
  std::string address = {};
  std::string token_file = {};
  // submit
  double cpus = 0;
  double gpus = 0;
  std::string workdir = {};
  std::vector<std::string> environment = {};  // NAME=VALUE, or NAME
  bool no_environment = false;
  bool wait = false;
  std::vector<std::string> program = {};  // and its arguments
  // list
  bool as_json = false;
  // logs
  bool follow = false;
  // stop
  double grace = 5;  // seconds
};
int run_job(const JobArguments& arguments);

struct TuneArguments {
  std::string what = {};  // "run", "resume", "check", "show" or "report"
  std::string file = {};
  // run, resume
  std::string address = {};
  std::string token_file = {};
  // show, report
  std::string run = {};  // its folder; empty: the sweep's last one
  bool as_json = false;
  std::string output = {};  // empty: report.html in the run's folder
};
int run_tune(const TuneArguments& arguments);

}  // namespace troupe::cli
