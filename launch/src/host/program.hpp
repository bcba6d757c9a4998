#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "os/unique_fd.hpp"
#include "plan/plan.hpp"

namespace troupe::launch {

/// What is to be executed.
struct ProgramSpec {
  std::vector<std::string> arguments;  ///< the first names the program; never empty
  Variables environment;               ///< all of it
  std::string directory;               ///< to be its working directory
};

/// Exit codes for a program that could not be executed, as a shell has them.
inline constexpr int kNotExecutable = 126, kNotFound = 127;

/// Why a program was not started.
struct NotStarted {
  int exit_code = kNotFound;
  std::string why;  ///< says what, why, and what to do
};

/// How a program ended.
struct Ended {
  int exit_code = 0;
  int signal = 0;  ///< that ended it; 0: it exited

  bool well() const { return exit_code == 0 && signal == 0; }
  /// As a shell has it: 128 + the signal.
  int status() const { return signal != 0 ? 128 + signal : exit_code; }
};

/// A program that runs in a process group of its own, with its standard output and error in pipes
/// and nothing to read. Used by one thread. A program that is destroyed before it has ended is
/// killed, with its group.
class Program {
 public:
  static std::variant<Program, NotStarted> start(const ProgramSpec& spec);

  Program(Program&& other) noexcept;
  Program& operator=(Program&& other) noexcept;
  ~Program();

  pid_t pid() const { return pid_; }
  /// To wait on: readable once the program has ended; readable ends of its pipes, which do not
  /// block.
  int ended_fd() const { return pidfd_.get(); }
  os::UniqueFd& output() { return output_; }
  os::UniqueFd& error() { return error_; }
  /// Reaps it. -> how it ended; once ended_fd() is readable, and once only.
  Ended reap();
  /// Before it is reaped: a limit of its own that has ended it, in words; empty: none has.
  std::string limit() const;
  /// To it and all that is left in its process group.
  void signal_group(int signal) const;

 private:
  Program() = default;

  pid_t pid_ = -1;  // stays as the group's number after the program was reaped
  bool reaped_ = false;
  os::UniqueFd pidfd_;
  os::UniqueFd output_;
  os::UniqueFd error_;
};

/// The file that `name` stands for: itself where it has a slash, taken from `directory`, else the
/// first executable of that name in the folders of PATH.
std::variant<std::string, NotStarted> find_program(const std::string& name,
                                                   const Variables& environment,
                                                   const std::string& directory);

}  // namespace troupe::launch
