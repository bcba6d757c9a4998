#include "node/spawn/sibling.hpp"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include "node/spawn/child.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {
namespace {

/// Where glibc keeps a thread's own id. A kernel that does not tell leaves the parent's there, which only robust and
/// priority-inheriting mutexes look at.
void* thread_id_address() {
  void* address = nullptr;
  return ::prctl(PR_GET_TID_ADDRESS, &address) == 0 ? address : nullptr;
}

std::uint64_t clone_flags(const void* thread_id) {
  return CLONE_PARENT | (thread_id != nullptr ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0);
}

/// With what a cgroup costs to enter paid here, once: a process that moves itself holds up all that begin meanwhile.
/// The signal at its end is that of this process, as for every sibling.
pid_t clone_into(int cgroup, void* thread_id) {
  clone_args what{};
  what.flags = clone_flags(thread_id) | CLONE_INTO_CGROUP;
  what.child_tid = reinterpret_cast<std::uintptr_t>(thread_id);
  what.cgroup = static_cast<std::uint64_t>(cgroup);
  return static_cast<pid_t>(::syscall(SYS_clone3, &what, sizeof what));
}

pid_t clone_here(void* thread_id) {
  const auto flags = clone_flags(thread_id) | SIGCHLD;
#if defined(__x86_64__)
  return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, thread_id, nullptr));
#elif defined(__aarch64__)
  return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, thread_id));
#else
#error "the order of clone's arguments is not known for this machine"
#endif
}

/// A kernel before 5.7 has no CLONE_INTO_CGROUP, and a container may forbid clone3.
pid_t clone_and_join(const char* cgroup, void* thread_id) {
  const pid_t pid = clone_here(thread_id);
  if (pid == 0) join_cgroup(cgroup);
  return pid;
}

}  // namespace

// glibc's fork cannot do that, so what it would do in the child is done here: its own thread id, and the list of robust
// mutexes.
pid_t fork_sibling(const char* cgroup) {
  auto* thread_id = thread_id_address();
  robust_list_head* robust = nullptr;
  std::size_t robust_size = 0;
  const bool has_robust = ::syscall(SYS_get_robust_list, 0, &robust, &robust_size) == 0 && robust != nullptr;

  pid_t pid = -1;
  if (cgroup == nullptr || *cgroup == '\0') {
    pid = clone_here(thread_id);
  } else {
    const os::UniqueFd directory(::open(cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (directory) pid = clone_into(directory.get(), thread_id);
    if (pid < 0) pid = clone_and_join(cgroup, thread_id);
  }
  if (pid == 0 && has_robust) ::syscall(SYS_set_robust_list, robust, robust_size);
  return pid;
}

}  // namespace troupe::node
