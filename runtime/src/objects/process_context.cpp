#include "objects/process_context.hpp"

#include <stdexcept>

#include <troupe/errors.hpp>

#include "ids/session.hpp"
#include "objects/forked_copy.hpp"

namespace troupe::runtime {

std::atomic<ProcessContext*> ProcessContext::current_{nullptr};

ProcessContext& ProcessContext::current() {
  if (auto* process = maybe()) return *process;
  if (is_forked_copy()) {
    raise({.kind = Failure::Kind::Refused,
           .message = "this process was forked by one that is in a cluster, and is in none itself: "
                      "call troupe::init here too, or start what it does as a task"});
  }
  raise({.kind = Failure::Kind::Refused,
         .message = "this process is in no cluster: call troupe::init first, and keep the Cluster "
                    "that it returns"});
}

void ProcessContext::refuse_on_loop() {
  throw std::logic_error(
      "troupe: this thread brings what others send to this process, as it calls what was given to "
      "GangContext::on_broken, so that a wait on it would never end: wake a thread of the program "
      "there, and wait on that one");
}

void ProcessContext::make_current(ProcessContext* process) {
  watch_for_copies(&leave_in_copy);
  if (process != nullptr) join_as_copy();
  current_.store(process, std::memory_order_release);
}

bool ProcessContext::leave_in_copy() {
  if (current_.exchange(nullptr) == nullptr) return false;
  if (current_session() != 0) end_session();
  return true;
}

}  // namespace troupe::runtime
