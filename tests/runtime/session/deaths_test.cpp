// What the death of a process costs its callers: what was running, and no more.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "eventually.hpp"
#include "functions.hpp"
#include "gate.hpp"
#include "guard.hpp"
#include "process_stat.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

bool is_killer(int number) { return number % 97 == 50; }

/// Plain values of three sizes and a failure: what a reply may hold.
std::string work(int number) {
  if (is_killer(number)) ::raise(SIGKILL);
  if (number % 10 == 3) throw std::out_of_range(std::to_string(number));
  return std::to_string(number) + std::string(number % 7 == 0 ? 3000 : 8, 'x');
}

/// More than the log of replies takes, and what lies in the object store.
std::string work_largely(int number) {
  if (is_killer(number)) ::raise(SIGKILL);
  return std::string(number % 2 == 0 ? 20'000 : 150'000, 'x');
}

struct Mortal {
  std::string work(int number, int last) {
    if (number == last) ::raise(SIGKILL);
    if (number % 10 == 3) throw std::out_of_range(std::to_string(number));
    return std::to_string(number);
  }
};

struct Stopper {
  /// Once that has made all of its calls, and has most probably sent them.
  std::string stop_caller(int caller, const std::string& gate) {
    wait_at(gate);
    std::this_thread::sleep_for(300ms);
    ::kill(caller, SIGSTOP);
    return {};
  }
  std::string work(int number) { return work_largely(number); }
};

bool is_stopped(pid_t process) { return stat_of(process).state == "T"; }

/// A process that lets this one go on, a second after it was stopped. Made before threads are.
class Waker {
 public:
  Waker() : process_(::fork()) {
    REQUIRE(process_ >= 0);
    if (process_ == 0) wake(::getppid());
  }
  ~Waker() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  bool has_seen_me_stopped() const {
    siginfo_t ended{};
    return ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == process_;
  }

 private:
  [[noreturn]] static void wake(pid_t stopped) {
    while (::getppid() == stopped && !is_stopped(stopped)) std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(1s);
    ::kill(stopped, SIGCONT);
    ::_exit(0);
  }

  pid_t process_;
};

/// 'v' its value, 't' what it threw, 'd' its process died.
template <class T>
char end_of(const Ref<T>& ref) {
  try {
    ref.get(kGuard);
    return 'v';
  } catch (const TaskError&) {
    return 't';
  } catch (const ProcessDied&) {
    return 'd';
  }
}

char expected_of(int number) {
  if (is_killer(number)) return 'd';
  return number % 10 == 3 ? 't' : 'v';
}

}  // namespace

TEST_CASE(
    "of four thousand tasks without a try left those fail that end their process and no other",
    "[runtime][session][death]") {
  auto cluster = init({.cpus = 2});
  std::vector<Ref<std::string>> refs;
  for (int i = 0; i < 4000; ++i) refs.push_back(with({.retries = 0}).task<work>(i));
  std::vector<int> wrong;
  for (int i = 0; i < 4000; ++i) {
    if (end_of(refs[static_cast<std::size_t>(i)]) != expected_of(i)) wrong.push_back(i);
  }
  CHECK(wrong == std::vector<int>{});
}

TEST_CASE("results that no log and no ring holds outlive a process that ends in its next task",
          "[runtime][session][death]") {
  auto cluster = init({.cpus = 2});
  std::vector<Ref<std::string>> refs;
  for (int i = 0; i < 400; ++i) refs.push_back(with({.retries = 0}).task<work_largely>(i));
  std::vector<int> wrong;
  for (int i = 0; i < 400; ++i) {
    const auto end = end_of(refs[static_cast<std::size_t>(i)]);
    if (end != (is_killer(i) ? 'd' : 'v')) wrong.push_back(i);
  }
  CHECK(wrong == std::vector<int>{});
}

TEST_CASE("results larger than a socket outlive a process that ends while its caller stands still",
          "[runtime][session][death]") {
  const Waker waker;
  auto cluster = init({.cpus = 1});
  const auto actor = spawn<Stopper>();
  Gate gate;
  std::vector<Ref<std::string>> refs{actor.call<&Stopper::stop_caller>(::getpid(), gate.path())};
  for (int i = 0; i <= 50; ++i) refs.push_back(actor.call<&Stopper::work>(i));
  gate.open();
  std::string ends;
  for (const auto& ref : refs) ends += end_of(ref);
  CHECK(ends == std::string(51, 'v') + "d");
  CHECK(eventually([&] { return waker.has_seen_me_stopped(); }));
}

/// The first calls of an actor go through its socket; one that has been called much shares a ring.
TEST_CASE("the calls that an actor has finished before it ends are answered",
          "[runtime][session][death]") {
  auto cluster = init({.cpus = 2});
  std::vector<std::string> wrong;
  for (int last = 0; last < 60; ++last) {
    const auto actor = spawn<Mortal>();
    for (int i = 0; last % 2 == 1 && i < 200; ++i)
      actor.call<&Mortal::work>(1000, last).get(kGuard);
    std::vector<Ref<std::string>> refs;
    for (int i = 0; i < 64; ++i) refs.push_back(actor.call<&Mortal::work>(i, last));
    for (int i = 0; i < 64; ++i) {
      const auto end = end_of(refs[static_cast<std::size_t>(i)]);
      if (end != (i >= last ? 'd' : i % 10 == 3 ? 't' : 'v'))
        wrong.push_back(std::to_string(i) + " of " + std::to_string(last));
    }
  }
  CHECK(wrong == std::vector<std::string>{});
}
