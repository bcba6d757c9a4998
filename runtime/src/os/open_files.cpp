#include "os/open_files.hpp"

#include <mutex>

#include <sys/resource.h>

namespace troupe::os {
namespace {

std::once_flag raised;
rlimit before{};
bool is_raised = false;

}  // namespace

void raise_open_files_limit() {
  std::call_once(raised, [] {
    if (::getrlimit(RLIMIT_NOFILE, &before) != 0 || before.rlim_cur == before.rlim_max) return;
    const rlimit most{before.rlim_max, before.rlim_max};
    is_raised = ::setrlimit(RLIMIT_NOFILE, &most) == 0;
  });
}

void restore_open_files_limit() {
  if (is_raised) ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace troupe::os
