#include "objects/process_context.hpp"

#include <troupe/errors.hpp>

namespace troupe::runtime {

std::atomic<ProcessContext*> ProcessContext::current_{nullptr};

ProcessContext& ProcessContext::current() {
  if (auto* process = maybe()) return *process;
  raise({.kind = Failure::Kind::Refused,
         .message = "this process is in no cluster: call troupe::init first, and keep the Cluster "
                    "that it returns"});
}

void ProcessContext::make_current(ProcessContext* process) {
  current_.store(process, std::memory_order_release);
}

}  // namespace troupe::runtime
