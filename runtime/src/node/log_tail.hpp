#pragma once

#include <cstdint>
#include <string>

namespace troupe::node {

/// The end of a log file that a process writes, for the message that says how the process ended. A
/// value.
class LogTail {
 public:
  LogTail() = default;
  /// Of a process that is about to start: what the file holds by now is not its own. An empty name:
  /// there is no file.
  explicit LogTail(std::string file);

  /// "; its log, FILE, ends with: 'LINE / LINE'", of the last lines that it has written, cut to
  /// what a message can hold; "; its log is FILE" where it has written nothing; "" without a file.
  /// Reads the file.
  std::string quote() const;
  /// "; its log is FILE", or "".
  std::string name() const;

 private:
  std::string file_;
  std::uint64_t start_ = 0;
};

}  // namespace troupe::node
