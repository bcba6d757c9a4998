#include "host/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/name.hpp"
#include "host/limits.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) { return "'" + config::printable(text) + "'"; }

struct Pipe {
  os::UniqueFd read;
  os::UniqueFd write;
};

bool make(Pipe& pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe.read.reset(ends[0]);
  pipe.write.reset(ends[1]);
  return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Of posix_spawn, with what it is to do in the child before the program is executed.
class SpawnPlan {
 public:
  SpawnPlan(const std::string& directory, int output, int error) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, error, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  /// -> 0, or the number of an error
  int spawn(pid_t& pid, const std::string& file, std::vector<std::string> arguments,
            const Variables& variables) const {
    std::vector<std::string> environment;
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    return ::posix_spawn(&pid, file.c_str(), &actions_, &attributes_, pointers(arguments).data(),
                         pointers(environment).data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

NotStarted explained(int error, const std::string& file) {
  std::string why = std::strerror(error);
  if (error == ENOEXEC)
    why = "it is neither a program for this machine nor a script that begins with '#!'";
  if (error == ENOENT) why = "the interpreter that it names is not there";
  if (error == E2BIG) why = "its arguments and its environment are too large together";
  return {kNotExecutable, fmt::format("{} cannot be executed: {}", quoted(file), why)};
}

NotStarted out_of(const char* what) {
  return {kNotExecutable,
          fmt::format("there is no {} for one more program ({})", what, std::strerror(errno))};
}

/// Of a script, by the end of its name.
std::string_view interpreter_of(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kKnown{{{".sh", "sh"},
                                                                                 {".bash", "bash"},
                                                                                 {".pl", "perl"},
                                                                                 {".rb", "ruby"},
                                                                                 {".js", "node"},
                                                                                 {".R", "Rscript"},
                                                                                 {".jl", "julia"}}};
  for (const auto& [ending, interpreter] : kKnown)
    if (name.ends_with(ending)) return interpreter;
  return "python3";
}

std::string value_of(const Variables& environment, const std::string& name) {
  const auto found = std::ranges::find(environment, name, &Variables::value_type::first);
  return found == environment.end() ? std::string() : found->second;
}

}  // namespace

std::variant<std::string, NotStarted> find_program(const std::string& name,
                                                   const Variables& environment,
                                                   const std::string& directory) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos) {
    const auto file = fs::path(directory) / name;
    if (!fs::exists(file, ignored))
      return NotStarted{kNotFound, fmt::format("there is no file {}", quoted(file.string()))};
    if (fs::is_directory(file, ignored))
      return NotStarted{kNotExecutable, fmt::format("{} is a folder", quoted(file.string()))};
    if (::access(file.c_str(), X_OK) != 0) {
      return NotStarted{kNotExecutable,
                        fmt::format("{} is not executable: chmod +x it, or name its "
                                    "interpreter before it, as in '{} {}'",
                                    quoted(file.string()), interpreter_of(name), name)};
    }
    return file.string();
  }
  const auto path = value_of(environment, "PATH");
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find(':', begin), path.size());
    const auto folder = path.substr(begin, end - begin);
    const auto file = fs::path(directory) / folder / name;  // an absolute folder stands for itself
    if (fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0)
      return file.string();
    begin = end + 1;
  }
  auto why = fmt::format("there is no program {} in its PATH ({})", quoted(name),
                         path.empty() ? "which is empty" : path);
  if (const auto file = fs::path(directory) / name; fs::is_regular_file(file, ignored)) {
    const bool runs = ::access(file.c_str(), X_OK) == 0;
    why += fmt::format(
        "; {} is there: write {}", quoted(file.string()),
        runs ? fmt::format("'./{}'", name)
             : fmt::format("its interpreter before it, as in '{} {}'", interpreter_of(name), name));
  }
  return NotStarted{kNotFound, std::move(why)};
}

std::variant<Program, NotStarted> Program::start(const ProgramSpec& spec) {
  std::error_code ignored;
  if (!fs::is_directory(spec.directory, ignored)) {
    return NotStarted{kNotExecutable,
                      fmt::format("the working directory {} is not there: make it the same on each "
                                  "machine, or send it with --workdir",
                                  quoted(spec.directory))};
  }
  auto found = find_program(spec.arguments.front(), spec.environment, spec.directory);
  if (auto* why = std::get_if<NotStarted>(&found)) return std::move(*why);
  const auto& file = std::get<std::string>(found);

  Pipe output, error;
  if (!make(output) || !make(error)) return out_of("pipe");
  Program program;
  const SpawnPlan plan(spec.directory, output.write.get(), error.write.get());
  if (const int failed = plan.spawn(program.pid_, file, spec.arguments, spec.environment)) {
    program.pid_ = -1;
    return explained(failed, file);
  }
  program.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, program.pid_, 0)));
  if (!program.pidfd_) return out_of("file descriptor");
  program.output_ = std::move(output.read);
  program.error_ = std::move(error.read);
  return program;
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(other.reaped_),
      pidfd_(std::move(other.pidfd_)),
      output_(std::move(other.output_)),
      error_(std::move(other.error_)) {}

Program& Program::operator=(Program&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(reaped_, other.reaped_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(output_, other.output_);
  std::swap(error_, other.error_);
  return *this;
}

Program::~Program() {
  if (pid_ < 0 || reaped_) return;
  signal_group(SIGKILL);
  reap();
}

std::string Program::limit() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return {};
  const bool was_ended = info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  return was_ended ? limit_that_ended(pid_, info.si_status) : std::string();
}

Ended Program::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status)};
}

void Program::signal_group(int signal) const { ::kill(-pid_, signal); }

}  // namespace troupe::launch
