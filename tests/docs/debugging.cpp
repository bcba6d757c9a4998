// What docs/debugging.md debugs, as a driver: does what its first argument says.
#include <cassert>
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>
#include <troupe/troupe.hpp>

namespace {

// [mean]
int mean(const std::vector<int>& values) {
  assert(!values.empty());
  int sum = 0;
  for (const int value : values) sum += value;
  return sum / static_cast<int>(values.size());
}
// [/mean]

// [wait]
void wait_for_debugger() {
  volatile bool go_on = false;  // in gdb: set var go_on = true
  std::cerr << "process " << getpid() << " waits for a debugger" << std::endl;
  while (!go_on) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}
// [/wait]

int mean_with_debugger(const std::vector<int>& values) {
  wait_for_debugger();
  return mean(values);
}

rlim_t core_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  return limit.rlim_cur;
}

void run(const std::string& what) {
  if (what == "plain") {
    // [plain]
    std::cout << mean({1, 2, 6}) << '\n';  // a task is a function: call it
    // [/plain]
  } else if (what == "task") {
    // [task]
    std::cout << troupe::task<mean>(std::vector<int>{1, 2, 6}).get() << '\n';
    // [/task]
  } else if (what == "crash") {
    troupe::with({.retries = 0}).task<mean>(std::vector<int>{}).get();
  } else if (what == "wait") {
    std::cout << troupe::task<mean_with_debugger>(std::vector<int>{1, 2, 6}).get() << '\n';
  } else if (what == "limit") {
    std::cout << troupe::task<core_limit>().get() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    run(argc > 1 ? argv[1] : "");
    std::cout
        << std::flush;  // before the cluster ends, and with it the debugger of a worker process
  } catch (const std::exception& error) {
    std::cerr << "debugging: " << error.what() << '\n';
    return 1;
  }
}
