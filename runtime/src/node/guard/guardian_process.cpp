#include "node/guard/guardian_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include "node/guard/mark.hpp"
#include "os/cgroup.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {
namespace {

constexpr int kSweepRounds = 5;    // of one worker process: a race with a child that forks is lost by then
constexpr int kFinalRounds = 200;  // of all, 10 ms apart: two seconds
constexpr int kSweepRemoval = 50;  // of one cgroup; what is not empty then is removed at the end
constexpr int kFinalRemoval = 1000;
constexpr int kBetweenRoundsMs = 10;
// Worker processes come and go in numbers, and each look at /proc costs: what is told meanwhile is done in one go. With
// cgroups there is nothing to look for, and to remove many at once would hold up those that begin.
constexpr std::chrono::milliseconds kLeastRest{10}, kMostRest{500};
constexpr int kRestPerWork = 4;

using Marks = std::vector<std::vector<std::string>>;

/// What is in a file of /proc, as far as it can be read: the process may end meanwhile, and reading then fails.
std::string read_all(std::ifstream& file) {
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The variables of a process, each closed by NUL and the whole opened by one; nothing if they may not be read, or it is
/// dead or the kernel's; empty if it is between two programs, or has none.
std::optional<std::string> environment_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  if (!file) return std::nullopt;
  const auto variables = read_all(file);
  return variables.empty() ? variables : std::string(1, '\0') + variables;
}

/// Whether a process of which no variables were read may have some: in the midst of an exec there is memory, and
/// nothing yet to be known by.
bool in_exec(pid_t pid) {
  constexpr std::size_t kMemory = 20, kVariables = 47, kVariablesEnd = 48;  // as in proc(5), from field 3, the state
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  auto fields = read_all(file);
  fields.erase(0, fields.rfind(')') + 1);  // the name may hold anything
  std::istringstream rest(fields);
  const std::vector<std::string> values(std::istream_iterator<std::string>(rest), {});
  if (values.size() <= kVariablesEnd || values[kMemory] == "0") return false;  // no memory: dead
  return values[kVariablesEnd] == "0" || values[kVariablesEnd] != values[kVariables];
}

bool carries(const std::string& environment, const std::vector<std::string>& marks) {
  return std::ranges::all_of(marks, [&](const auto& mark) {
    return environment.find(std::string(1, '\0') + mark + std::string(1, '\0')) != std::string::npos;
  });
}

bool carries_any(const std::optional<std::string>& environment, const Marks& any_of) {
  return environment && std::ranges::any_of(any_of, [&](const auto& marks) { return carries(*environment, marks); });
}

/// Kills a process only if it is, at this moment, the one that was looked at: a number is used again sooner or later.
void kill_if_marked(pid_t pid, const Marks& any_of) {
  os::UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!handle) {
    if (errno == ENOSYS) ::kill(pid, SIGKILL);  // before Linux 5.3
  } else if (carries_any(environment_of(pid), any_of)) {
    ::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
  }
}

/// Kills what is marked. -> how many those were, with what could not be told from them.
int kill_round(const Marks& any_of) {
  int found = 0;
  DIR* processes = ::opendir("/proc");
  if (processes == nullptr) return 0;
  while (const dirent* entry = ::readdir(processes)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == ::getpid()) continue;
    const auto environment = environment_of(pid);
    const bool marked = carries_any(environment, any_of);
    if (marked) kill_if_marked(pid, any_of);
    if (marked || (environment && environment->empty() && in_exec(pid))) ++found;
  }
  ::closedir(processes);
  return found;
}

void become_guardian(int pipe) {
  ::setsid();
  ::prctl(PR_SET_NAME, "troupe-guardian");
  ::prctl(PR_SET_PDEATHSIG, 0);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)!::chdir("/");
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) ::dup2(null, fd);
  // What the node's process had open must close with the node, not with its guardian.
  if (pipe > 3) ::syscall(SYS_close_range, 3U, static_cast<unsigned>(pipe - 1), 0U);
  ::syscall(SYS_close_range, static_cast<unsigned>(std::max(pipe, 2) + 1), ~0U, 0U);
}

bool more_to_read(int pipe) {
  pollfd readable{pipe, POLLIN, 0};
  return ::poll(&readable, 1, 0) == 1 && (readable.revents & POLLIN) != 0;
}

/// A member that was killed holds its cgroup until it is gone.
void remove_within(const std::string& cgroup, int rounds) {
  for (int round = 0; round < rounds && !os::remove_cgroup(cgroup); ++round) ::poll(nullptr, 0, kBetweenRoundsMs);
}

class Ward {
 public:
  Ward(std::string cookie, std::string cgroup) : cookie_(std::move(cookie)), cgroup_(std::move(cgroup)) {}

  void apply(const GuardianRecord& record) {
    switch (record.what) {
      case GuardianRecord::Add:
        groups_.insert(record.group);
        break;
      case GuardianRecord::Remove:
        groups_.erase(record.group);
        break;
      case GuardianRecord::Sweep:
        ended_.push_back(record);
        break;
      default:
        break;
    }
  }

  /// With a cgroup per worker process there is nothing to look for; else one look at /proc serves all of them.
  void sweep_ended() {
    Marks marks;
    for (const auto& ended : ended_) {
      const auto group = os::process_cgroup(cgroup_, ended.group);
      if (os::remove_empty_cgroup(group)) continue;  // it left nothing behind
      if (os::is_cgroup(group)) {
        os::kill_cgroup(group);
        remove_within(group, kSweepRemoval);
      } else {
        marks.push_back({cookie_entry(cookie_), process_entry(ended.process)});
      }
    }
    ended_.clear();
    if (!marks.empty()) kill_marked(marks, kSweepRounds);
  }

  void end_all() {
    if (!cgroup_.empty()) os::kill_cgroup(cgroup_);
    for (auto group : groups_) {
      if (group > 1) ::kill(-group, SIGKILL);
    }
    kill_marked({{cookie_entry(cookie_)}}, kFinalRounds);
    if (!cgroup_.empty()) remove_within(cgroup_, kFinalRemoval);
  }

 private:
  std::string cookie_;
  std::string cgroup_;
  std::set<pid_t> groups_;
  std::vector<GuardianRecord> ended_;
};

}  // namespace

bool kill_marked(const Marks& any_of, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (kill_round(any_of) == 0) return true;
    ::poll(nullptr, 0, kBetweenRoundsMs);
  }
  return false;
}

void run_guardian(int pipe, const std::string& cookie, const std::string& cgroup) {
  become_guardian(pipe);
  Ward ward(cookie, cgroup);
  std::array<GuardianRecord, 256> records;
  auto rest = kLeastRest;
  bool rested = false;
  for (;;) {
    const auto got = ::read(pipe, records.data(), sizeof records);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof(GuardianRecord); ++i) ward.apply(records[i]);
    if (cgroup.empty() && !std::exchange(rested, true)) ::poll(nullptr, 0, static_cast<int>(rest.count()));
    if (more_to_read(pipe)) continue;
    const auto start = std::chrono::steady_clock::now();
    ward.sweep_ended();
    const auto work = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    rest = std::clamp(kRestPerWork * work, kLeastRest, kMostRest);
    rested = false;
  }
  ward.end_all();
  ::_exit(0);
}

}  // namespace troupe::node
