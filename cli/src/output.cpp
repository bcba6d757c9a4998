#include "output.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/files/replace_file.hpp"

namespace troupe::cli {
namespace {

/// `error`: as errno has it; 0: not known.
[[noreturn]] void refuse_loss(int error) {
  throw std::runtime_error(
      fmt::format("cannot write to the standard output{}{}: what was asked for is not, or not "
                  "wholly, there; give the command an output that takes it",
                  error == 0 ? "" : ": ", error == 0 ? "" : std::strerror(error)));
}

}  // namespace

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

void say_all(std::string_view text) {
  errno = 0;
  // A long text is written before it is flushed.
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refuse_loss(errno);
  flush_output();
}

void show_page(const std::string& page) {
  if (::isatty(STDOUT_FILENO) != 1) return say_all(page);
  const auto before = ::signal(SIGPIPE, SIG_IGN);  // of a reader who has seen enough
  std::FILE* man = ::popen("command -v man > /dev/null && exec man -l -", "w");
  const bool was_written = man && std::fwrite(page.data(), 1, page.size(), man) == page.size();
  const bool was_shown = man && ::pclose(man) == 0 && was_written;
  ::signal(SIGPIPE, before);
  if (!was_shown) say_all(page);
}

void flush_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed || std::ferror(stdout) != 0) refuse_loss(errno);
}

void replace_file(const std::string& path, std::string_view content) {
  try {
    os::replace_file(path, content);
  } catch (const std::system_error& error) {
    throw std::runtime_error(
        fmt::format("'{}' cannot be written ({}): name another place, or make room", path,
                    error.code().message()));
  }
}

}  // namespace troupe::cli
