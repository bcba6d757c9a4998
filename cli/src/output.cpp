#include "output.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::cli {
namespace {

/// `error`: as errno has it; 0: not known.
[[noreturn]] void refuse_loss(int error) {
  throw std::runtime_error(
      fmt::format("cannot write to the standard output{}{}: what was asked for is not, or not "
                  "wholly, there; give the command an output that takes it",
                  error == 0 ? "" : ": ", error == 0 ? "" : std::strerror(error)));
}

/// -> as errno has it; 0: all of it is written.
int write_into(const std::string& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) write(out);
  out.close();
  if (out) return 0;
  return errno == 0 ? EIO : errno;
}

/// `error`: of write_into.
void require(int error, const std::string& path) {
  if (error == 0) return;
  throw std::runtime_error(fmt::format(
      "'{}' cannot be written ({}): name another place, or make room", path, std::strerror(error)));
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

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto before = fs::status(path, ignored);
  int error = 0;
  if (fs::exists(before) && !fs::is_regular_file(before)) {
    error = write_into(path, write);
  } else {
    std::error_code failed;
    const auto behind_links = fs::weakly_canonical(path, failed);
    const auto target = failed ? path : behind_links.string();
    const auto part = fmt::format("{}.part-{}", target, ::getpid());
    error = write_into(part, write);
    // Where nothing can be added to the folder, the file itself may still be written.
    if (error == EACCES && fs::exists(before)) return require(write_into(path, write), path);
    if (error == 0 && fs::exists(before)) fs::permissions(part, before.permissions(), ignored);
    if (error == 0 && ::rename(part.c_str(), target.c_str()) != 0) error = errno;
    if (error != 0) ::unlink(part.c_str());
  }
  require(error, path);
}

}  // namespace troupe::cli
