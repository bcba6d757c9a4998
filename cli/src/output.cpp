#include "output.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::cli {

void keep_standard_descriptors() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free, as all below it are open.
    if (::open("/dev/null", O_RDONLY) < 0) return;
  }
}

void say(std::FILE* to, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
  std::clearerr(to);
}

void flush_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return;
  throw std::runtime_error(
      fmt::format("cannot write to the standard output{}{}: what was asked for is not, or not "
                  "wholly, there; give the command an output that takes it",
                  errno == 0 ? "" : ": ", errno == 0 ? "" : std::strerror(errno)));
}

}  // namespace troupe::cli
