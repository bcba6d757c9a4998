#include "node/spawn/spawn.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "node/guard/mark.hpp"
#include "node/spawn/child.hpp"
#include "os/open_files.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {
namespace {

enum class Step : int { Directory, Log, Execute };
struct Report {
  Step step;
  LogError error;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

/// In the child: async-signal-safe, since the parent may have other threads. Returns only what went
/// wrong.
Report execute(const Spawn& what, pid_t parent, char* const* arguments, char* const* environment) {
  belong_to(parent);
  if (what.mark > 0) lower_mark(what.mark);
  default_signals();
  detach_stdin();
  if (what.output >= 0) {
    ::dup2(what.output, STDOUT_FILENO);
    ::dup2(what.output, STDERR_FILENO);
  } else if (!what.log.empty()) {
    if (const auto error = redirect_output(what.log.c_str())) return {Step::Log, error};
  }
  if (!what.directory.empty() && ::chdir(what.directory.c_str()) != 0)
    return {Step::Directory, {.number = errno}};
  for (int fd : what.keep) ::fcntl(fd, F_SETFD, 0);
  // Last: until it executes, this process holds the parent's descriptors, which may be more than
  // the limit allows, so that it could open no other.
  os::restore_open_files_limit();
  if (what.program >= 0) {
    ::execveat(what.program, "", arguments, environment, AT_EMPTY_PATH);
  } else {
    ::execve(what.path.c_str(), arguments, environment);
  }
  return {Step::Execute, {.number = errno}};
}

std::string describe(const Spawn& what, const Report& report) {
  const auto* error = std::strerror(report.error.number);
  switch (report.step) {
    case Step::Directory:
      return fmt::format("cannot change to its directory {}: {}", what.directory, error);
    case Step::Log:
      return fmt::format("cannot open its log file {}: {}", what.log, describe(report.error));
    case Step::Execute:
      break;
  }
  return fmt::format("cannot execute {}: {}", what.path, error);
}

}  // namespace

std::variant<pid_t, SpawnFailed> spawn(const Spawn& what) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return SpawnFailed{fmt::format("pipe: {}", std::strerror(errno))};
  os::UniqueFd read_end(ends[0]), write_end(ends[1]);
  const auto arguments = pointers(what.arguments);
  const auto environment = pointers(what.environment);
  const pid_t parent = ::getpid();

  const pid_t pid = ::fork();
  if (pid < 0) return SpawnFailed{fmt::format("fork: {}", std::strerror(errno))};
  if (pid == 0) {
    const auto report = execute(what, parent, arguments.data(), environment.data());
    (void)!::write(write_end.get(), &report, sizeof report);
    ::_exit(127);
  }
  write_end.reset();
  Report report{};
  ssize_t got;
  do {
    got = ::read(read_end.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof report)) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return SpawnFailed{describe(what, report)};
}

std::vector<std::string> environment_with(const std::vector<std::string>& more,
                                          const std::vector<std::string>& without) {
  auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto name = name_of(*entry);
    const bool replaced =
        std::ranges::any_of(more, [&](const auto& other) { return name_of(other) == name; });
    if (!replaced && std::ranges::find(without, name) == without.end()) out.emplace_back(*entry);
  }
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace troupe::node
