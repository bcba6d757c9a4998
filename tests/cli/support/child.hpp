#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "built.hpp"
#include "eventually.hpp"
#include "guard.hpp"

namespace troupe::test {

/// Where a program's standard error goes: into its output, in the order in which both were written,
/// or apart from it. What is parsed is read apart: on a slow machine a program says on standard
/// error that it tries again.
enum class Streams { Together, Apart };

/// A program that a test has started. Killed at the end, if it still runs.
class Child {
 public:
  /// `environment`: "NAME=value", in place of this process's namesakes.
  explicit Child(std::vector<std::string> arguments,
                 const std::vector<std::string>& environment = {},
                 Streams streams = Streams::Together);
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Of a `troupe` that is a guardian: the process of the node (and of the head).
  pid_t agent() const;
  void signal(int number) const;
  /// Reads until `text` has been printed; fails the test with all of the output where it is not in
  /// time.
  void wait_for_output(const std::string& text, std::chrono::milliseconds timeout = kGuard);
  /// The status as waitpid gives it, or nothing where it still runs then. Reads the output
  /// meanwhile.
  std::optional<int> wait(std::chrono::milliseconds timeout = kGuard);
  /// What it has printed so far.
  const std::string& output() const { return output_; }
  /// With Streams::Apart: on standard error.
  const std::string& errors() const { return error_output_; }

 private:
  /// Waits until something has been printed or a pipe has ended. False once all have ended.
  bool read_some(std::chrono::milliseconds timeout);
  void read_rest();  // what has been printed by now

  std::string name_;  // of the program
  pid_t pid_ = -1;
  int pipe_ = -1, error_pipe_ = -1;  // -1: there is none, or it has ended
  std::optional<int> status_;
  std::string output_, error_output_;
};

/// Runs it to its end: exit code (128 + signal where one ended it) and output.
struct Finished {
  int exit_code = 0;
  std::string output;
  std::string errors;  ///< with Streams::Apart
};
Finished run(std::vector<std::string> arguments, const std::vector<std::string>& environment = {},
             std::chrono::milliseconds timeout = kGuard, Streams streams = Streams::Together);

/// What it prints on standard output; fails the test, with what it prints on standard error, where
/// its exit code is another one.
std::string printed_by(std::vector<std::string> arguments,
                       const std::vector<std::string>& environment = {}, int exit_code = 0);

/// The number that stands behind this word in it; fails the test where there is none.
int number_after(const std::string& output, const std::string& word);

bool is_alive(pid_t pid);  ///< and no zombie
/// Processes whose environment has this entry ("NAME=value"): what a cluster has left behind.
std::vector<pid_t> processes_with(const std::string& entry);
/// Living processes that were started with this variable, whose value is a path below the folder.
std::vector<pid_t> processes_with_value_in(const std::string& variable, const std::string& folder);

/// A folder that is gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace troupe::test
