#include "support/child.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

namespace troupe::test {
namespace {

std::vector<std::string> merged_environment(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry; ++entry) {
    const auto replaced = std::any_of(more.begin(), more.end(),
                                      [&](const auto& m) { return name_of(m) == name_of(*entry); });
    if (!replaced) all.emplace_back(*entry);
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Child::Child(std::vector<std::string> arguments, const std::vector<std::string>& environment,
             Streams streams)
    : name_(arguments.at(0)) {
  int ends[2], error_ends[2] = {-1, -1};
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  if (streams == Streams::Apart) REQUIRE(pipe2(error_ends, O_CLOEXEC) == 0);
  auto variables = merged_environment(environment);
  auto argv = pointers(arguments);
  auto envp = pointers(variables);
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], 1);
    dup2(streams == Streams::Apart ? error_ends[1] : ends[1], 2);
    execvpe(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
  if (streams == Streams::Apart) close(error_ends[1]);
  error_pipe_ = error_ends[0];
}

Child::Child(Child&& other) noexcept
    : name_(other.name_),
      pid_(std::exchange(other.pid_, -1)),
      pipe_(std::exchange(other.pipe_, -1)),
      error_pipe_(std::exchange(other.error_pipe_, -1)),
      status_(std::exchange(other.status_, {})),
      output_(std::move(other.output_)),
      error_output_(std::move(other.error_output_)) {}

namespace {

std::string program_of(pid_t pid) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored);
}

/// The children that the main thread of this process has made.
std::vector<pid_t> children_of(pid_t pid) {
  const auto number = std::to_string(pid);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

/// Copies of itself that this process has made: of a guardian, the process of the node.
std::vector<pid_t> copies_of(pid_t pid) {
  auto copies = children_of(pid);
  std::erase_if(copies, [&](pid_t child) { return program_of(child) != program_of(pid); });
  return copies;
}

}  // namespace

Child::~Child() {
  if (pid_ > 0 && !status_) {
    const auto copies = copies_of(pid_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    // They end with it, but later, and may write into a folder that the test is about to remove.
    if (!eventually([&] { return std::ranges::none_of(copies, is_alive); }))
      std::cerr << "a copy of process " << pid_ << ", which a test has killed, does not end\n";
  }
  read_rest();
  for (const int pipe : {pipe_, error_pipe_})
    if (pipe >= 0) close(pipe);
  // tests/gate/run_ctest.py forgives no test that failed beside these, whatever it looked for.
  const auto printed = output_ + error_output_;
  if (printed.find("Sanitizer: ") != std::string::npos ||
      printed.find("Assertion `") != std::string::npos)
    std::cerr << output_ << error_output_;
  constexpr int kCrashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  if (status_ && WIFSIGNALED(*status_) && std::ranges::count(kCrashes, WTERMSIG(*status_)))
    std::cerr << "a program that this test has started was ended by SIG"
              << sigabbrev_np(WTERMSIG(*status_)) << ": " << name_ << '\n';
}

pid_t Child::agent() const {
  const auto children = children_of(pid_);
  REQUIRE_FALSE(children.empty());
  return children.front();
}

void Child::signal(int number) const { REQUIRE(kill(pid_, number) == 0); }

namespace {

/// Once it has ended, it is closed and -1.
void read_from(int& pipe, std::string& into) {
  char buffer[4096];
  const auto got = read(pipe, buffer, sizeof buffer);
  if (got <= 0) {
    close(std::exchange(pipe, -1));
  } else {
    into.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

bool Child::read_some(std::chrono::milliseconds timeout) {
  if (pipe_ < 0 && error_pipe_ < 0) return false;
  pollfd waits[2]{{.fd = pipe_, .events = POLLIN, .revents = 0},  // poll() passes over a -1
                  {.fd = error_pipe_, .events = POLLIN, .revents = 0}};
  if (poll(waits, 2, static_cast<int>(timeout.count())) <= 0) return true;
  if (waits[0].revents != 0) read_from(pipe_, output_);
  if (waits[1].revents != 0) read_from(error_pipe_, error_output_);
  return pipe_ >= 0 || error_pipe_ >= 0;
}

void Child::read_rest() {
  const auto read = [this] { return output_.size() + error_output_.size(); };
  for (auto before = read(); read_some(std::chrono::milliseconds(0)) && read() != before;)
    before = read();
}

void Child::wait_for_output(const std::string& text, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (output_.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
    if (!read_some(std::chrono::milliseconds(50))) break;
  }
  INFO("waited for '" << text << "' in:\n" << output_);
  REQUIRE(output_.find(text) != std::string::npos);
}

std::optional<int> Child::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!status_ && std::chrono::steady_clock::now() < deadline) {
    if (!read_some(std::chrono::milliseconds(10))) poll(nullptr, 0, 5);
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  }
  if (status_) read_rest();
  return status_;
}

Finished run(std::vector<std::string> arguments, const std::vector<std::string>& environment,
             std::chrono::milliseconds timeout, Streams streams) {
  const auto name = arguments.front();
  Child child(std::move(arguments), environment, streams);
  const auto status = child.wait(timeout);
  INFO(name << " printed:\n" << child.output() << child.errors());
  REQUIRE(status);
  return {WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status), child.output(),
          child.errors()};
}

std::string printed_by(std::vector<std::string> arguments,
                       const std::vector<std::string>& environment, int exit_code) {
  const auto finished = run(std::move(arguments), environment, kGuard, Streams::Apart);
  INFO(finished.output << finished.errors);
  REQUIRE(finished.exit_code == exit_code);
  return finished.output;
}

namespace {

/// As far as it can be read: a process may end meanwhile.
std::string read_proc(pid_t pid, const char* file) {
  std::ostringstream text;
  text << std::ifstream("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

int number_after(const std::string& output, const std::string& word) {
  const auto at = output.find(word + ' ');
  INFO("looked for '" << word << "' in:\n" << output);
  REQUIRE(at != std::string::npos);
  return std::stoi(output.substr(at + word.size() + 1));
}

bool is_alive(pid_t pid) {
  const auto text = read_proc(pid, "stat");
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() && text[name_end + 2] != 'Z';
}

namespace {

/// `text` stands between zeros in its environment.
std::vector<pid_t> processes_whose_environment_has(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& folder : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(folder.path().filename().c_str());
    if (pid <= 0 || pid == getpid() || !is_alive(pid)) continue;
    if (('\0' + read_proc(pid, "environ")).find(text) != std::string::npos) found.push_back(pid);
  }
  return found;
}

}  // namespace

std::vector<pid_t> processes_with(const std::string& entry) {
  return processes_whose_environment_has('\0' + entry + '\0');
}

std::vector<pid_t> processes_with_value_in(const std::string& variable, const std::string& folder) {
  return processes_whose_environment_has('\0' + variable + '=' + folder + '/');
}

TemporaryFolder::TemporaryFolder() {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace troupe::test
