#include "processes.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::bench {
namespace {

pid_t parent_of(pid_t pid) {
  std::ostringstream read;  // as far as it can be: the process may end meanwhile
  read << std::ifstream(fmt::format("/proc/{}/stat", pid)).rdbuf();
  const auto text = read.str();
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  char state = 0;
  pid_t parent = 0;
  std::istringstream(text.substr(name_end + 1)) >> state >> parent;
  return parent;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto replaced = std::ranges::any_of(
        more, [&](const auto& other) { return name_of(other) == name_of(*entry); });
    if (!replaced) all.emplace_back(*entry);
  }
  return all;
}

}  // namespace

std::vector<pid_t> processes_of(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& folder : std::filesystem::directory_iterator("/proc")) {
    if (const pid_t pid = std::atoi(folder.path().filename().c_str()); pid > 0)
      children.emplace(parent_of(pid), pid);
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  return found;
}

double rss_bytes(const std::vector<pid_t>& processes) {
  double pages = 0;
  for (const auto pid : processes) {
    double size = 0, resident = 0;
    std::ifstream(fmt::format("/proc/{}/statm", pid)) >> size >> resident;
    pages += resident;
  }
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double pss_bytes(const std::vector<pid_t>& processes) {
  double kilobytes = 0;
  for (const auto pid : processes) {
    std::ifstream in(fmt::format("/proc/{}/smaps_rollup", pid));
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("Pss:")) kilobytes += std::strtod(line.c_str() + 4, nullptr);
    }
  }
  return kilobytes * 1024;
}

void pause(std::chrono::milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); }

bool has_ended(pid_t pid, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (::kill(pid, 0) == 0 && std::chrono::steady_clock::now() < deadline)
    pause(std::chrono::milliseconds(1));
  return ::kill(pid, 0) != 0;
}

Command::Command(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe2");
  auto variables = environment_with(environment);
  const auto argv = pointers(arguments);
  const auto envp = pointers(variables);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
}

Command::~Command() {
  ::close(pipe_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  for (int i = 0; i < 500; ++i) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) return;
    pause(std::chrono::milliseconds(10));
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

const std::string& Command::wait_for(const std::string& text, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (output_.find(text) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait{.fd = pipe_, .events = POLLIN, .revents = 0};
    char buffer[4096];
    const auto got = left.count() > 0 && ::poll(&wait, 1, static_cast<int>(left.count())) > 0
                         ? ::read(pipe_, buffer, sizeof buffer)
                         : -1;
    if (got <= 0)
      throw std::runtime_error(
          fmt::format("waited for '{}' in vain; it printed: {}", text, output_));
    output_.append(buffer, static_cast<std::size_t>(got));
  }
  return output_;
}

TemporaryFolder::TemporaryFolder() {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace troupe::bench
