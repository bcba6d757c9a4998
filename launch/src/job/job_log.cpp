#include "job/job_log.hpp"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include <fmt/format.h>

namespace troupe::launch {

/// As much as there is room for. -> how many bytes.
std::size_t JobLog::write_some(std::string_view text) {
  std::size_t done = 0;
  error_ = 0;
  while (done < text.size() && error_ == 0) {
    const auto written = ::write(file_, text.data() + done, text.size() - done);
    if (written > 0) done += static_cast<std::size_t>(written);
    if (written == 0) error_ = EIO;
    if (written < 0 && errno != EINTR) error_ = errno;
  }
  if (done > 0) is_in_line_ = text[done - 1] != '\n';
  return done;
}

void JobLog::write(std::string_view text) {
  if (tell_of_loss()) text.remove_prefix(write_some(text));
  if (text.empty()) return;
  untold_bytes_ += text.size();
  lost_bytes_ += text.size();
  why_lost_ = std::strerror(error_);
}

/// The number in the line grows until the log takes the first byte of it.
bool JobLog::tell_of_loss() {
  if (!note_.empty()) note_.erase(0, write_some(note_));
  if (!note_.empty()) return false;
  if (untold_bytes_ == 0) return true;
  note_ = fmt::format("{}troupe: {} bytes that this job printed are missing here: {}\n",
                      is_in_line_ ? "\n" : "", untold_bytes_, why_lost_);
  const auto written = write_some(note_);
  note_.erase(0, written == 0 ? std::string::npos : written);
  if (written > 0) untold_bytes_ = 0;
  return untold_bytes_ == 0 && note_.empty();
}

}  // namespace troupe::launch
