#include "objects/process_context.hpp"

#include <mutex>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "ids/session.hpp"

namespace troupe::runtime {

namespace {

std::atomic<bool> is_copy{false};
std::atomic<int> hung_up_in_copies{-1};
int null_device = -1;  // takes the place of that socket: its number is not used again

}  // namespace

std::atomic<ProcessContext*> ProcessContext::current_{nullptr};

ProcessContext& ProcessContext::current() {
  if (auto* process = maybe()) return *process;
  if (is_copy.load()) {
    raise({.kind = Failure::Kind::Refused,
           .message = "this process was forked by one that is in a cluster, and is in none itself: "
                      "call troupe::init here too, or start what it does as a task"});
  }
  raise({.kind = Failure::Kind::Refused,
         .message = "this process is in no cluster: call troupe::init first, and keep the Cluster "
                    "that it returns"});
}

void ProcessContext::make_current(ProcessContext* process) {
  static std::once_flag watched;
  std::call_once(watched, [] {
    null_device = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::pthread_atfork(nullptr, nullptr, [] { leave_in_copy(); });
  });
  if (process != nullptr) is_copy.store(false);
  current_.store(process, std::memory_order_release);
}

void ProcessContext::hang_up_in_copies(int socket) { hung_up_in_copies.store(socket); }

void ProcessContext::leave_in_copy() {
  if (current_.exchange(nullptr) == nullptr) return;
  is_copy.store(true);
  end_session();
  const int socket = hung_up_in_copies.exchange(-1);
  if (socket >= 0 && null_device >= 0) ::dup3(null_device, socket, O_CLOEXEC);
}

}  // namespace troupe::runtime
