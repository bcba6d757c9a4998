#pragma once

#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "guard.hpp"

namespace troupe::testing {

/// What the driver's terminal has shown so far, which also its worker processes can read. A value
/// that crosses to them.
struct Terminal {
  std::string file;

  std::string text() const {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> lines(const std::string& text) const {
    std::vector<std::string> found;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (line.find(text) != std::string::npos) found.push_back(line);
    }
    return found;
  }
  void await(const std::string& text) const {
    const auto until = std::chrono::steady_clock::now() + troupe::test::kGuard;
    while (lines(text).empty()) {
      if (std::chrono::steady_clock::now() > until)
        throw std::runtime_error("nobody says: " + text);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
};

/// Standard error of this process goes to a file, or to what a descriptor is open for, while this
/// lives.
class StandardError {
 public:
  explicit StandardError(const std::string& file)
      : StandardError(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  /// Which it closes.
  explicit StandardError(int descriptor)
      : kept_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {
    ::dup2(descriptor, STDERR_FILENO);
    ::close(descriptor);
  }
  ~StandardError() {
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

 private:
  const int kept_;
};

}  // namespace troupe::testing
