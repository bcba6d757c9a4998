#include "node/spawn/zygote.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <system_error>
#include <thread>

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

#include "node/guard/mark.hpp"
#include "node/spawn/child.hpp"
#include "node/spawn/fork_check.hpp"
#include "node/spawn/free_chunks.hpp"
#include "node/spawn/sibling.hpp"
#include "node/spawn/zygote_wire.hpp"
#include "os/huge_pages.hpp"
#include "os/library_threads.hpp"
#include "os/threads.hpp"
#include "transport/handshake/handshake.hpp"

namespace troupe::node {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kMayRehearse = false;  // with the first thread it starts one of its own, which stays
#else
constexpr bool kMayRehearse = true;
#endif
constexpr std::size_t kThreadBytes = 4096;
// For the end of a thread; those after the short ones last 1 ms. One that has done its work may take
// a while to leave where the cores are busy.
constexpr int kShortLooks = 100, kMostLooks = 1100;
constexpr int kFirstToGo = 500;  // of 1,000, see proc(5)

/// What is the same for all worker processes, before the first of them: a child pays for each page
/// that it writes.
void prepare() {
  std::cout.flush();  // what is buffered now would be printed by every child again
  std::fflush(nullptr);
  line_buffer_output();
  default_signals();
  // Of this process alone: what main has buffered may go to a pipe that is closed.
  ::signal(SIGPIPE, SIG_IGN);
  detach_stdin();
  // User code is not to join or to connect in the cluster's name.
  for (const auto* variable : {"TROUPE_TOKEN", "TROUPE_TOKEN_FILE"}) ::unsetenv(variable);
  // Where the machine's memory runs out, a worker process goes and not the node, which seems to
  // have all large values.
  std::ofstream("/proc/self/oom_score_adj") << kFirstToGo;
}

/// What the second thread of a worker process takes is there already then: the symbols to start it,
/// its stack, and its malloc arena. Twice, since to start one on a stack that was used before takes
/// symbols of its own; and detached as that one is, which takes another.
void rehearse_threads() {
  for (int i = 0; i < 2 && !os::has_other_threads(); ++i) {
    std::atomic<bool> has_run = false;
    try {
      std::thread([&has_run] {
        std::make_unique<std::string>(kThreadBytes, ' ').reset();
        has_run = true;
      }).detach();
    } catch (const std::system_error&) {
      return;  // missed, and told, by the worker processes
    }
    while (!has_run) ::poll(nullptr, 0, 1);
    // Bounded: with the first thread a library may start one that stays.
    for (int looks = 0; looks < kMostLooks && os::has_other_threads(); ++looks)
      ::poll(nullptr, 0, looks < kShortLooks ? 0 : 1);
  }
}

/// In the zygote, whose children mostly have the same environment.
void set_environment(const ZygotePacket& fork) {
  for (std::size_t i = 1; i < fork.texts.size(); ++i) {
    const auto& entry = fork.texts[i];
    const auto equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const auto name = entry.substr(0, equals);
    const auto* value = entry.c_str() + equals + 1;
    const auto* set = std::getenv(name.c_str());
    if (set == nullptr || std::strcmp(set, value) != 0) ::setenv(name.c_str(), value, 1);
  }
}

/// In the child, which prints to the zygote's log where it cannot have its own.
void open_log(const char* file) {
  const auto error = redirect_output(file);
  if (!error) return;
  std::fprintf(stderr,
               "troupe: process %d cannot open its log file %s (%s): it prints to the log of its "
               "job's zygote\n",
               static_cast<int>(::getpid()), file, describe(error).c_str());
}

/// In the child: makes it the worker process that the packet asks for.
void become_worker(const ZygotePacket& fork) {
  belong_to(fork.pid);
  ::signal(SIGPIPE, SIG_DFL);
  if (!fork.texts.empty() && !fork.texts[0].empty()) open_log(fork.texts[0].c_str());
  lower_mark(fork.process.value());
}

void answer(int control, ZygotePacket::Kind kind, ProcessId process, pid_t pid,
            std::string text = {}) {
  ZygotePacket packet{kind, pid, process, {}};
  if (!text.empty()) packet.texts.push_back(std::move(text));
  if (send_packet(control, encode(packet), -1, 0) != 0) ::_exit(0);  // no node, no zygote
}

}  // namespace

int serve_zygote(int control) {
  // A parent that died before this line has closed its end of `control`, which ends the loop below.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  prepare();
  answer(control, ZygotePacket::Kind::Ready, {}, ::getpid());
  transport::warm_up();  // while the first request is on its way
  os::find_threaded_libraries();
  if (kMayRehearse) rehearse_threads();
  os::gather_huge_pages();
  take_free_chunks();
  for (;;) {
    auto received = receive_packet(control, 0);
    if (!received.packet) ::_exit(0);
    const auto& fork = *received.packet;
    if (fork.kind != ZygotePacket::Kind::Fork || !received.fd) continue;
    if (auto why = why_not_to_fork(); !why.empty()) {
      answer(control, ZygotePacket::Kind::CannotFork, fork.process, 0, std::move(why));
      continue;
    }
    set_environment(fork);
    const pid_t pid = fork_sibling();
    if (pid == 0) {
      ::close(control);
      become_worker(fork);
      return received.fd.release();
    }
    if (pid < 0) {
      answer(control, ZygotePacket::Kind::Failed, fork.process, 0,
             fmt::format("fork: {}", std::strerror(errno)));
    } else {
      answer(control, ZygotePacket::Kind::Forked, fork.process, pid);
    }
  }
}

}  // namespace troupe::node
