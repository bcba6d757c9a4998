#include "node/spawn/sibling.hpp"

#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

namespace troupe::node {
namespace {

/// Where glibc keeps a thread's own id. A kernel that does not tell leaves the parent's there,
/// which only robust and priority-inheriting mutexes look at.
void* thread_id_address() {
  void* address = nullptr;
  return ::prctl(PR_GET_TID_ADDRESS, &address) == 0 ? address : nullptr;
}

/// The signal at the child's end is that of this process, as for every sibling.
pid_t clone_sibling(void* thread_id) {
  const auto flags = CLONE_PARENT |
                     (thread_id != nullptr ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0) |
                     SIGCHLD;
#if defined(__x86_64__)
  return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, thread_id, nullptr));
#elif defined(__aarch64__)
  return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, thread_id));
#else
#error "the order of clone's arguments is not known for this machine"
#endif
}

}  // namespace

// glibc's fork cannot do that, so what it would do in the child is done here: its own thread id,
// and the list of robust mutexes.
pid_t fork_sibling() {
  robust_list_head* robust = nullptr;
  std::size_t robust_size = 0;
  const bool has_robust =
      ::syscall(SYS_get_robust_list, 0, &robust, &robust_size) == 0 && robust != nullptr;
  const pid_t pid = clone_sibling(thread_id_address());
  if (pid == 0 && has_robust) ::syscall(SYS_set_robust_list, robust, robust_size);
  return pid;
}

}  // namespace troupe::node
