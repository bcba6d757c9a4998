#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "guard.hpp"
#include "support/forked_gang.hpp"
#include "support/scratch.hpp"

namespace troupe::testing {

/// Where the ranks of a gang write what they log.
class RankLogs {
 public:
  explicit RankLogs(int ranks) : ranks_(ranks) {}

  /// In a rank: its standard error from now on.
  void take_over(int rank) const {
    const int fd = ::open(file(rank).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    expect(fd >= 0 && ::dup2(fd, STDERR_FILENO) >= 0, "the rank's standard error is a file");
    ::close(fd);
  }

  /// Lines of all ranks that contain `text`.
  std::vector<std::string> lines(const std::string& text) const {
    std::vector<std::string> found;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::ifstream in(file(rank));
      for (std::string line; std::getline(in, line);) {
        if (line.find(text) != std::string::npos) found.push_back(line);
      }
    }
    return found;
  }
  void await(const std::string& text) const {
    expect(eventually([&] { return !lines(text).empty(); }, test::kGuard),
           "somebody says: " + text);
  }

 private:
  std::string file(int rank) const { return (folder_.path() / std::to_string(rank)).string(); }
  const Scratch folder_;
  const int ranks_;
};

}  // namespace troupe::testing
