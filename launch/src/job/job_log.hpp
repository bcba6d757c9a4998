#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::launch {

/// What is written to a job's log. A full disk does not end the job: what the log does not take is
/// counted and gone, and a line in the log says how much, in its place, once the log takes some
/// again. One thread.
class JobLog {
 public:
  /// `file` stays its owner's.
  explicit JobLog(int file) : file_(file) {}

  void write(std::string_view text);
  /// Tries to write the line about what is lost. -> there is none to write any more.
  bool tell_of_loss();

  /// Of all that was to be written.
  std::uint64_t lost_bytes() const { return lost_bytes_; }
  /// "No space left on device", of the last loss; empty: there was none.
  const std::string& why_lost() const { return why_lost_; }

 private:
  std::size_t write_some(std::string_view text);

  const int file_;
  bool is_in_line_ = false;  // what was written last is no line end
  int error_ = 0;            // of the last write
  std::string note_;         // rest of a line about a loss, of which the log has the beginning
  std::uint64_t untold_bytes_ = 0;
  std::uint64_t lost_bytes_ = 0;
  std::string why_lost_;
};

}  // namespace troupe::launch
