#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "built.hpp"

namespace troupe::test {

/// A program that a test has started, with its standard output and error in one pipe. Killed at the
/// end, if it still runs.
class Child {
 public:
  /// `environment`: "NAME=value", in place of this process's namesakes.
  explicit Child(std::vector<std::string> arguments,
                 const std::vector<std::string>& environment = {});
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Of a `troupe` that is a guardian: the process of the node (and of the head).
  pid_t agent() const;
  void signal(int number) const;
  /// Reads until `text` has been printed; fails the test with all of the output where it is not in
  /// time.
  void wait_for_output(const std::string& text,
                       std::chrono::milliseconds timeout = std::chrono::seconds(10));
  /// The status as waitpid gives it, or nothing where it still runs then. Reads the output
  /// meanwhile.
  std::optional<int> wait(std::chrono::milliseconds timeout = std::chrono::seconds(20));
  /// What it has printed so far.
  const std::string& output() const { return output_; }

 private:
  bool read_some(std::chrono::milliseconds timeout);

  pid_t pid_ = -1;
  int pipe_ = -1;
  std::optional<int> status_;
  std::string output_;
};

/// Runs it to its end: exit code (128 + signal where one ended it) and output.
struct Finished {
  int exit_code = 0;
  std::string output;
};
Finished run(std::vector<std::string> arguments, const std::vector<std::string>& environment = {},
             std::chrono::milliseconds timeout = std::chrono::seconds(20));

/// The number that stands behind this word in it; fails the test where there is none.
int number_after(const std::string& output, const std::string& word);

void pause_briefly();  ///< between two looks at something that changes by itself

/// Polls `done` every few milliseconds until it is true, or the time is over; -> done().
template <class Done>
bool eventually(Done done, std::chrono::milliseconds timeout = std::chrono::seconds(5)) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return done();
    pause_briefly();
  }
  return true;
}

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
