// A program that makes a detached actor or uses one: does what its argument says. It is built twice,
// as two programs that name the same types; of the second one the types are not quite the same.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <troupe/troupe.hpp>

#include "guard.hpp"

#ifndef TROUPE_TEST_OTHER
#define TROUPE_TEST_OTHER 0
#endif

struct Part {
  std::vector<int> numbers;
  std::string text;
};

class Ledger {
 public:
  explicit Ledger(int start) : sum_(start) {
    if (start < 0) throw std::invalid_argument("a ledger begins at 0 or above");
  }
  int add(int number) { return sum_ += number; }
  int add_all(const std::vector<int>& numbers) { return sum_of({numbers, {}}); }
  int sum_of(const Part& part) {
    for (const int number : part.numbers) sum_ += number;
    return sum_;
  }
  std::vector<int> count(int numbers) const {
    return std::vector<int>(static_cast<std::size_t>(numbers), 1);
  }
  troupe::Ref<int> refer() { return troupe::put(7); }
  int add_later(const std::vector<troupe::Ref<int>>& numbers) { return add(numbers[0].get()); }
  troupe::Array<float> array(int numbers) const {
    troupe::NewArray<float> made(static_cast<std::size_t>(numbers));
    for (auto& number : made.values()) number = 0.5F;
    return troupe::put(std::move(made)).get();
  }
  int tasks() const;
  void die() { std::raise(SIGKILL); }
#if TROUPE_TEST_OTHER
  int subtract(int number) { return sum_ -= number; }
  int scale(long factor) { return sum_ *= static_cast<int>(factor); }
#else
  int scale(int factor) { return sum_ *= factor; }
#endif

 private:
  int sum_ = 0;
};

int twice(int number) { return 2 * number; }
int Ledger::tasks() const { return troupe::task<twice>(sum_).get(); }

int throws() { throw std::runtime_error("no number"); }
int comes_late() {
  std::this_thread::sleep_for(std::chrono::seconds(5));
  return 1;
}

std::vector<int> ones(int numbers) {
  return std::vector<int>(static_cast<std::size_t>(numbers), 1);
}

/// Whose constructor takes its time.
struct Slow {
  Slow(int milliseconds, bool fails) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    if (fails) throw std::runtime_error("slow to fail");
  }
  int one() { return 1; }
};

struct OtherType {
  int add(int number) { return number; }
};

namespace {

using namespace std::chrono_literals;
constexpr auto kName = "tests/ledger";
constexpr auto kPatience = troupe::test::kGuard;

/// One line: what it gave, or the class of error and its text.
template <class Call>
void say(const std::string& what, Call call) {
  try {
    std::cout << what << ": " << call() << std::endl;
  } catch (const troupe::Refused& error) {
    std::cout << what << ": Refused: " << error.what() << std::endl;
  } catch (const troupe::TimedOut& error) {
    std::cout << what << ": TimedOut: " << error.what() << std::endl;
  } catch (const std::exception& error) {
    std::cout << what << ": failed: " << error.what() << std::endl;
  }
}

auto made(const std::string& name, int start) {
  auto ledger = troupe::with({.name = name, .detached = true}).spawn<Ledger>(start);
  ledger.ready().get(kPatience);
  return ledger;
}

void use() {
  const auto ledger = troupe::find<Ledger>(kName, kPatience);
  say("add", [&] { return ledger.call<&Ledger::add>(1).get(kPatience); });
  say("add ref", [&] { return ledger.call<&Ledger::add>(troupe::task<twice>(5)).get(kPatience); });
  say("large", [&] {
    return ledger.call<&Ledger::sum_of>(Part{std::vector<int>(300'000, 1), "x"}).get(kPatience);
  });
  say("large result", [&] { return ledger.call<&Ledger::count>(300'000).get(kPatience).size(); });
  say("array", [&] {
    const auto array = ledger.call<&Ledger::array>(300'000).get(kPatience);
    return std::to_string(array.size()) + " of " + std::to_string(array[299'999]);
  });
  say("nested ref", [&] {
    const std::vector<troupe::Ref<int>> refs{troupe::put(1)};
    return ledger.call<&Ledger::add_later>(refs).get(kPatience);
  });
  say("ref result", [&] { return ledger.call<&Ledger::refer>().get(kPatience).get(kPatience); });
  say("its own tasks", [&] { return ledger.call<&Ledger::tasks>().get(kPatience); });
  say("order", [&] {
    std::vector<troupe::Ref<int>> sums;
    for (int i = 0; i < 1000; ++i) sums.push_back(ledger.call<&Ledger::add>(1));
    const auto all = troupe::get(sums, kPatience);
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i] != all[i - 1] + 1) return "broken at " + std::to_string(i);
    }
    return std::string("kept");
  });
}

/// Calls that fail as they leave, while others wait for them and for large arguments.
void entangle() {
  const auto ledger = troupe::find<Ledger>(kName, kPatience);
  for (int round = 0; round < 20; ++round) {
    const auto large = troupe::task<ones>(200'000);
    troupe::wait(std::vector{large});
    const auto handle = troupe::find<Ledger>(kName, kPatience);
    const std::vector<troupe::Ref<int>> refs{troupe::put(1)};
    const auto refused = handle.call<&Ledger::add_later>(refs);
    const auto after = handle.call<&Ledger::add>(refused);
    const auto all = handle.call<&Ledger::add_all>(large);
    const auto one = handle.call<&Ledger::add>(1);
    const int before = round * 200'001;
    if (all.get(kPatience) != before + 200'000 || one.get(kPatience) != before + 200'001)
      throw std::runtime_error("the sums are wrong");
    for (const auto& failed : {refused, after}) {
      try {
        failed.get(kPatience);
        throw std::logic_error("no failure");
      } catch (const troupe::Refused&) {
      }
    }
  }
}

/// The session ends while calls wait for large arguments, and a thread for the calls.
void leave_early() {
  troupe::Ref<int> waited;
  std::thread waits;
  {
    auto ledger = troupe::find<Ledger>(kName, kPatience);
    const auto large = troupe::task<ones>(2'000'000);
    troupe::wait(std::vector{large});
    for (int i = 0; i < 10; ++i) waited = ledger.call<&Ledger::add_all>(large);
    waits = std::thread([waited] {
      try {
        waited.get();
      } catch (const troupe::Error&) {
      }
    });
  }
  std::this_thread::sleep_for(1ms);
  waits.detach();
}

int uses_it(const troupe::Actor<Ledger>& ledger) {
  return ledger.call<&Ledger::add>(1).get(kPatience);
}

[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

void make() {
  const auto ledger = made(kName, 100);
  say("add", [&] { return ledger.call<&Ledger::add>(1).get(kPatience); });
}

void make_and_wait() {
  const auto ledger = made(kName, 0);
  std::cout << "made" << std::endl;
  wait_for_the_end();
}

void find_or_make() {
  const auto open = troupe::with({.name = kName, .detached = true});
  say("add", [&] { return open.find_or_spawn<Ledger>(0).call<&Ledger::add>(1).get(kPatience); });
}

void hand_on() {
  say("a task adds",
      [] { return troupe::task<uses_it>(troupe::find<Ledger>(kName, kPatience)).get(kPatience); });
}

void fail_to_make() {
  say("constructor", [] { return made("tests/never", -1), 0; });
  say("taken", [] { return made(kName, 0), 0; });
  say("no namespace", [] { return made("plain", 0), 0; });
  say("argument", [] {
    const auto ledger = troupe::with({.name = "tests/argument", .detached = true})
                            .spawn<Ledger>(troupe::task<throws>());
    return ledger.ready().get(kPatience), 0;
  });
  say("cancelled", [] {
    const auto ledger = troupe::with({.name = "tests/cancelled", .detached = true})
                            .spawn<Ledger>(troupe::task<comes_late>());
    auto ready = ledger.ready();
    ready.cancel();
    return ready.get(kPatience), 0;
  });
  say("find", [] { return troupe::find<Ledger>("tests/never", 500ms), 0; });
}

int find_or_spawn_slow(int milliseconds, bool fails) {
  const auto slow = troupe::with({.name = "tests/slow", .detached = true})
                        .find_or_spawn<Slow>(milliseconds, fails);
  const int one = slow.call<&Slow::one>().get(kPatience);
  slow.kill();
  return one;
}

void misname() {
  for (const std::string name : {"/", "a/", "/a", "a/b/c", "a//b"}) {
    say("made " + name, [&] { return made(name, 0), 0; });
    say("plain " + name, [&] { return troupe::with({.name = name}), 0; });
    say("find " + name, [&] { return troupe::find<Ledger>(name, 100ms), 0; });
  }
}

void hold_a_plain_name() {
  const auto plain = troupe::with({.name = "plain"}).spawn<Ledger>(5);
  const auto spaced = troupe::with({.name = "tests/attached"}).spawn<Ledger>(5);
  plain.ready().get(kPatience);
  spaced.ready().get(kPatience);
  std::cout << "holding" << std::endl;
  wait_for_the_end();
}

void look_for_them() {
  say("plain", [] { return troupe::find<Ledger>("plain", 300ms), 0; });
  say("attached", [] { return troupe::find<Ledger>("tests/attached", kPatience), 0; });
  const auto own = troupe::with({.name = "plain"}).spawn<Ledger>(1);
  say("own", [&] { return own.call<&Ledger::add>(1).get(kPatience); });
}

void mistake_it() {
  say("type", [] { return troupe::find<OtherType>(kName, kPatience), 0; });
#if TROUPE_TEST_OTHER
  say("method", [] {
    return troupe::find<Ledger>(kName, kPatience).call<&Ledger::subtract>(1).get(kPatience);
  });
#endif
  say("signature",
      [] { return troupe::find<Ledger>(kName, kPatience).call<&Ledger::scale>(1).get(kPatience); });
}

void see_it_die() {
  const auto ledger = troupe::find<Ledger>(kName, kPatience);
  say("die", [&] { return ledger.call<&Ledger::die>().get(kPatience), 0; });
  say("after", [&] { return ledger.call<&Ledger::add>(1).get(kPatience); });
  say("find", [] { return troupe::find<Ledger>(kName, 500ms), 0; });
}

/// Returns once there is a file of the name that TROUPE_TEST_GO has.
void wait_until_told() {
  std::cout << "waiting" << std::endl;
  const std::string file = std::getenv("TROUPE_TEST_GO");
  while (access(file.c_str(), F_OK) != 0) std::this_thread::sleep_for(1ms);
  std::cout << "asking" << std::endl;
}

const std::map<std::string, void (*)()> kThings{
    {"make", make},
    {"make two",
     [] {
       made(kName, 0);
       made("tests/other", 0);
     }},
    {"find",
     [] {
       say("find", [] { return troupe::find<Ledger>(kName, 500ms), 0; });
       say("look", [] { return troupe::find<Ledger>(kName, 0ms), 0; });
     }},
    {"look when told",
     [] {
       wait_until_told();
       say("look", [] { return troupe::find<Ledger>(kName, 0ms), 0; });
     }},
    {"find it", [] { say("find", [] { return troupe::find<Ledger>(kName, kPatience), 0; }); }},
    {"make at 0", [] { made(kName, 0); }},
    {"make and wait", make_and_wait},
    {"find or make", find_or_make},
    {"entangle", [] { say("entangle", [] { return entangle(), "kept"; }); }},
    {"leave early", leave_early},
    {"use", use},
    {"hand on", hand_on},
    {"fail to make", fail_to_make},
    {"fail slowly", [] { say("slow", [] { return find_or_spawn_slow(200, true); }); }},
    {"construct for long", [] { say("slow", [] { return find_or_spawn_slow(60'000, false); }); }},
    {"make unseen",
     [] { troupe::with({.name = "tests/slow", .detached = true}).spawn<Slow>(500, false); }},
    {"kill slow", [] { troupe::find<Slow>("tests/slow", kPatience).kill(); }},
    {"construct at once", [] { say("slow", [] { return find_or_spawn_slow(0, false); }); }},
    {"misname", misname},
    {"hold a plain name", hold_a_plain_name},
    {"look for them", look_for_them},
    {"mistake it", mistake_it},
    {"see it die", see_it_die},
    {"kill", [] { troupe::find<Ledger>(kName, kPatience).kill(); }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto thing = kThings.find(argc > 1 ? argv[1] : "");
  const auto cluster = troupe::init(argc, argv);
  if (argc > 1 && argv[1] == std::string("report when told")) {
    wait_until_told();
    std::cout << cluster.status_json() << std::endl;
    return 0;
  }
  if (thing == kThings.end()) {
    std::cerr << "no such thing to do: " << (argc > 1 ? argv[1] : "") << '\n';
    return 2;
  }
  thing->second();
}
