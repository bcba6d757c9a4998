#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <troupe/errors.hpp>

#include "ids/ids.hpp"
#include "node/guard/reaper.hpp"
#include "node/log_tail.hpp"
#include "node/program/program.hpp"
#include "node/program/program_fetch.hpp"
#include "node/spawn/zygote_client.hpp"

namespace troupe::node {

using runtime::JobId;
using runtime::ProcessId;

/// One worker process to be started.
struct LaunchRequest {
  ProcessId process{};
  std::string log;                       ///< file for stdout and stderr; empty: inherited
  std::vector<std::string> environment;  ///< "NAME=value", on top of the node's
  os::UniqueFd link;                     ///< the worker's end
};

struct Launched {
  pid_t pid = 0;
  bool by_exec = false;  ///< it must still run up to troupe::init
};
/// The zygote ended before it answered: whether there is a process is not known. With a fresh link
/// it can be tried again.
struct LaunchLost {};
using LaunchResult = std::variant<Launched, LaunchLost, Failure>;

struct LauncherOptions {
  JobId job{};
  Program program;
  ProgramFetch fetch;  ///< how to get the program from its driver, if it is not on this machine
  std::string log;     ///< of the zygote: what main prints before troupe::init; empty: inherited
  std::chrono::milliseconds start_limit{10000};  ///< from exec to troupe::init
  std::chrono::milliseconds check_limit{5000};   ///< of the loader's answer on libraries
};

/// Starts the worker processes of one job on one node: finds the program, has one zygote of it, and
/// forks from that; where the zygote cannot fork, executes the program for each. What it starts are
/// children of this process, watched by the caller. Lives on the node's loop.
///
///   program: [unknown] --first start--> [resolving] --> [found]; a failure answers all that wait, back to [unknown]
///   zygote:  [none] --program found--> [starting] --Ready--> [serving] --ends--> [none]
///                                                     '--rest()--> [none]
///                    '--killed from outside, a few times in a row--> [starting]
///                                                     --it has threads--> exec per worker process, from then on
class Launcher : public std::enable_shared_from_this<Launcher> {
 public:
  using OnLaunched = std::function<void(LaunchResult)>;

  Launcher(asio::io_context& loop, Reaper& reaper, std::shared_ptr<ProgramCache> cache,
           LauncherOptions options);

  /// Takes over a zygote that is already there: a child of this process.
  void adopt(os::UniqueFd control, pid_t zygote);
  /// `done` is called once, maybe from within; once closed, with a failure or with a process that
  /// nobody wants any more.
  void start(LaunchRequest request, OnLaunched done);
  /// Ends the zygote, which is probably not needed any more; its worker processes live on. The next
  /// start makes a new one.
  void rest();
  /// Ends the zygote; its worker processes live on. Answers what waits.
  void close();

  pid_t zygote() const { return zygote_pid_; }  ///< 0: none runs
  const Program& program() const { return options_.program; }

 private:
  struct Pending {
    LaunchRequest request;
    OnLaunched done;
  };

  void advance();
  void resolve();
  void found(std::string path, os::UniqueFd file, bool in_place);
  void check_shipped();
  void fail_pending(const Failure& failure);

  void start_zygote();
  void end_zygote();
  void watch_zygote(os::UniqueFd control, pid_t pid);
  void on_zygote_ended(pid_t pid, int status);
  void explain_start(Failure failure, int status);
  void fork(Pending pending);
  void on_answer(Pending pending, const ZygotePacket* answer, os::UniqueFd link);
  void fall_back(const std::string& what_it_has);
  void execute(Pending pending);
  std::variant<pid_t, Failure> run_program(const std::string& boot, int keep,
                                           const std::string& log, std::uint64_t mark,
                                           std::vector<std::string> environment);

  asio::io_context& loop_;
  Reaper& reaper_;
  std::shared_ptr<ProgramCache> cache_;  // nullptr: programs of other machines cannot run here
  LauncherOptions options_;
  std::deque<Pending> pending_;

  enum class State { Unknown, Resolving, Found } state_ = State::Unknown;
  std::string path_;   // of the program on this machine
  os::UniqueFd file_;  // what is executed, where it was shipped
  bool in_place_ = true;

  std::shared_ptr<ZygoteClient> zygote_;
  pid_t zygote_pid_ = 0;
  asio::steady_timer start_timer_;
  bool start_timed_out_ = false;
  bool zygote_rests_ = false;  // it was ended by rest()
  int killed_starts_ = 0;      // of zygotes, one after the other, before they were ready
  LogTail zygote_log_;
  bool by_exec_ = false;
  bool closed_ = false;
};

}  // namespace troupe::node
