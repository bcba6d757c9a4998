// A driver for the tests of what is noticed of processes that say nothing any more. Prints what
// came of what its argument says.
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>
#include <troupe/troupe.hpp>

#include "guard.hpp"

namespace {

int sleeps() {
  sleep(600);
  return 0;
}

/// Lives on the node that stops.
struct Far {
  int pid() const { return getpid(); }
  int sleeps() { return ::sleeps(); }
  /// Of a value that this process owns, and that is not there yet.
  troupe::Ref<int> owns() const { return troupe::with({.cpus = 0}).task<::sleeps>(); }
};

std::string failure_of(const troupe::Ref<int>& ref) {
  try {
    return "got " + std::to_string(ref.get());
  } catch (const troupe::Error& error) {
    return error.what();
  }
}

/// Lives on the other node, and has made nothing of what it waits for.
struct Third {
  /// From here on there is a connection.
  int meets(const troupe::Actor<Far>& far) const { return far.call<&Far::pid>().get(); }
  std::string calls(const troupe::Actor<Far>& far) const {
    return failure_of(far.call<&Far::sleeps>());
  }
  std::string gets(const troupe::Ref<int>& ref) const { return failure_of(ref); }
  /// Once this has returned, the head knows that the call waits: it has answered what this process
  /// asked after that.
  void begins_call(const troupe::Actor<Far>& far);
  std::string ends_call() const { return failure_of(call_.value()); }

 private:
  std::optional<troupe::Ref<int>> call_;
};

int one() { return 1; }

void Third::begins_call(const troupe::Actor<Far>& far) {
  call_ = far.call<&Far::sleeps>();
  troupe::with({.cpus = 0}).task<one>().get(troupe::test::kGuard);
}

int third() {
  const troupe::Options near{.cpus = 0, .labels = {{"troupe.node", "1"}}};
  const auto far = troupe::with({.cpus = 0, .labels = {{"troupe.node", "2"}}}).spawn<Far>();
  std::cout << "far " << far.call<&Far::pid>().get() << std::endl;
  const auto caller = troupe::with(near).spawn<Third>();
  const auto getter = troupe::with(near).spawn<Third>();
  caller.call<&Third::meets>(far).get();
  getter.call<&Third::meets>(far).get();
  const auto owned = far.call<&Far::owns>().get();  // before the far one is busy for good
  const auto got = getter.call<&Third::gets>(owned);
  const auto called = caller.call<&Third::calls>(far);
  std::cout << "waiting" << std::endl;
  std::cout << "called: " << called.get() << std::endl;
  std::cout << "got: " << got.get() << std::endl;
  return 0;
}

/// Waits for an actor that is killed before it had a place.
int unplaced() {
  const auto all = troupe::with({.cpus = 2}).spawn<Far>();
  all.ready().get();
  const auto far = troupe::with({.cpus = 1}).spawn<Far>();
  const auto caller = troupe::spawn<Third>();
  caller.ready().get();
  caller.call<&Third::begins_call>(far).get();
  far.kill();
  std::cout << "called: " << caller.call<&Third::ends_call>().get(troupe::test::kGuard)
            << std::endl;
  return 0;
}

troupe::Ref<int> puts() { return troupe::put(42); }

/// A value of a worker process that has had nothing to do for longer than an idle one is kept.
int kept() {
  const auto ref = troupe::task<puts>().get();
  std::this_thread::sleep_for(std::chrono::seconds(12));
  std::cout << "value " << ref.get() << std::endl;
  return 0;
}

/// Prints this, and goes on at SIGUSR1.
void wait_for_signal(const std::string& said) {
  static volatile std::sig_atomic_t goes_on = 0;
  std::signal(SIGUSR1, [](int) { goes_on = 1; });
  std::cout << said << std::endl;
  while (goes_on == 0) usleep(10'000);
}

/// Reads and writes large values while the node beside it stands still.
int stores() {
  const auto far = troupe::with({.labels = {{"troupe.node", "1"}}}).spawn<Far>();
  far.call<&Far::pid>().get();
  const auto here = troupe::put(std::string(1'000'000, 'x'));
  wait_for_signal("far " + std::to_string(far.call<&Far::pid>().get()) + " attached");
  try {
    troupe::put(std::string(1'000'000, 'y'));
  } catch (const troupe::Error& error) {
    std::cout << "failed: " << error.what() << std::endl;
  }
  const auto later = troupe::put(std::string(1'000'000, 'z'));
  std::cout << "put " << later.get(troupe::test::kGuard).size() << std::endl;
  return 0;
}

/// Stands still until somebody lets it go on, as in a debugger.
int stops() {
  std::cout << "works " << troupe::task<one>().get() << std::endl;
  raise(SIGSTOP);
  std::cout << "still works " << troupe::task<one>().get() << std::endl;
  return 0;
}

/// Calls and starts things before and after the head has stood still.
int outlasts() {
  const auto far = troupe::spawn<Far>();
  const auto pid = far.call<&Far::pid>().get();
  wait_for_signal("works");
  std::cout << (far.call<&Far::pid>().get() == pid ? "the same process" : "another process")
            << std::endl;
  const auto other = troupe::spawn<Far>();
  std::cout << "still works " << troupe::task<one>().get() << ' '
            << (other.call<&Far::pid>().get() != pid) << std::endl;
  return 0;
}

/// Has a state, and prints it.
struct Counter {
  int count = 0;
  int next() {
    std::cout << "counted " << ++count << std::endl;
    return count;
  }
  int pid() const { return getpid(); }
};

/// Starts processes, calls an actor and runs tasks until SIGUSR1, whatever becomes of connections.
int counts() {
  const auto counter = troupe::spawn<Counter>();
  const auto pid = counter.call<&Counter::pid>().get();
  static volatile std::sig_atomic_t ends = 0;
  std::signal(SIGUSR1, [](int) { ends = 1; });
  int rounds = 0;
  while (ends == 0) {
    ++rounds;
    const auto other = troupe::spawn<Far>();  // a process of its own
    const auto ran = troupe::task<one>();
    if (counter.call<&Counter::next>().get(troupe::test::kGuard) != rounds ||
        ran.get(troupe::test::kGuard) != 1 ||
        other.call<&Far::pid>().get(troupe::test::kGuard) == pid)
      throw std::runtime_error("a call was lost");
    std::cout << "round " << rounds << std::endl;
  }
  std::cout << (counter.call<&Counter::pid>().get() == pid ? "the same process" : "another process")
            << ", rounds " << rounds << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    auto cluster = troupe::init(argc, argv);
    if (what == "third") return third();
    if (what == "unplaced") return unplaced();
    if (what == "kept") return kept();
    if (what == "stores") return stores();
    if (what == "stops") return stops();
    if (what == "outlasts") return outlasts();
    if (what == "counts") return counts();
    std::cerr << "no such thing to do: " << what << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << '\n';
    return 1;
  }
}
