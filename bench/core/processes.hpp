#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

/// Processes as /proc shows them, and programs started from here.
namespace troupe::bench {

/// `root` and all that descend from it.
std::vector<pid_t> processes_of(pid_t root);
/// Resident memory, what is shared counted in each.
double rss_bytes(const std::vector<pid_t>& processes);
/// Proportional set size: a page that n processes share counts 1/n in each.
double pss_bytes(const std::vector<pid_t>& processes);
void pause(std::chrono::milliseconds time);
/// True once `pid` has ended, at most `limit` later.
bool has_ended(pid_t pid, std::chrono::milliseconds limit);

/// A program that was started, with its standard output in a pipe. Ended by SIGTERM, then SIGKILL,
/// with this object.
class Command {
 public:
  /// Its standard error is dropped. Throws std::system_error.
  Command(std::vector<std::string> arguments, const std::vector<std::string>& environment);
  ~Command();
  Command(const Command&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads until `text` has been printed; -> what was printed. Throws std::runtime_error, with what
  /// was, at `limit`.
  const std::string& wait_for(const std::string& text,
                              std::chrono::milliseconds limit = std::chrono::seconds(10));

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
};

/// A folder for a cluster's files, gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace troupe::bench
