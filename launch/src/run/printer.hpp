#pragma once

#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "run/outlet.hpp"

namespace troupe::launch {

/// Where what the ranks print goes.
struct PrinterOptions {
  std::string log_directory;  ///< a file for each rank; empty: none
  bool tee = false;           ///< to the terminal too, where there are files
  bool quiet = false;         ///< to the terminal: only rank 0's
};

/// Prints what ranks have written, line by line with "[rank] " before each: what they wrote to their
/// standard output to this one's, what they wrote to their standard error to that. Keeps the last
/// lines of each. What goes to one pipe or terminal stays in order, whichever stream it came from.
/// Used by one thread.
class Printer {
 public:
  /// Bytes that may wait for whoever reads, before what ranks print is left with them.
  static constexpr std::size_t kMostUnread = 16 << 20;

  explicit Printer(PrinterOptions options);

  /// Before each attempt: files of later attempts are in folders of their own, `folder` in that for
  /// the logs. Throws Refused where a file cannot be made.
  void begin(int ranks, const std::string& folder);
  /// Whole lines.
  void print(int rank, bool to_error, std::string_view text);
  /// What this command says itself, on standard error, behind what was printed.
  void say(std::string_view text);
  /// Writes what was printed. Waits so long at most where whoever reads is slow: then some of it
  /// waits. Broken: the standard output cannot be written any more.
  Outlet::State flush(std::chrono::milliseconds patience);
  /// Bytes that were printed and are not written yet.
  std::size_t waiting() const { return out_.waiting() + err_.waiting(); }
  /// Of rank `rank`, the last ten lines at most, of 400 bytes at most.
  const std::deque<std::string>& last_lines(int rank) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Rank {
    std::unique_ptr<std::FILE, Close> file;
    std::deque<std::string> last;
  };
  void keep(Rank& rank, std::string_view line);
  void write_file(Rank& rank, std::string_view text);

  PrinterOptions options_;
  Outlet out_{STDOUT_FILENO};
  Outlet err_{STDERR_FILENO};
  const bool one_stream_;  // both are the same pipe or terminal
  std::vector<Rank> ranks_;
  bool warned_ = false;  // that a file could not be written
};

}  // namespace troupe::launch
