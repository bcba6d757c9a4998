// A driver for the tests of large values between hosts. Nodes carry the label host=near (where this
// driver runs) or host=far.
#include <chrono>
#include <csignal>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>
#include <troupe/troupe.hpp>
#include "guard.hpp"

namespace {

using Floats = troupe::Array<float>;
using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr auto kLimit = troupe::test::kGuard;

Floats made(std::size_t count, float value) { return Floats(std::vector<float>(count, value)); }
double total(const Floats& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
int twice(int x) { return 2 * x; }
int sleeps(int milliseconds) {
  usleep(static_cast<useconds_t>(milliseconds) * 1000);
  return milliseconds;
}
struct Keeper {
  double keep(Floats values) { return total(kept = std::move(values)); }
  Floats give() const { return kept; }
  Floats kept;
};

auto near() { return troupe::with({.labels = {{"host", "near"}}}); }
auto far() { return troupe::with({.labels = {{"host", "far"}}}); }

int failures = 0;
void check(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::cout << "not so: " << what << std::endl;
}

/// 10 M floats, 40 MB each, over and over: far more than the stores of 128 MiB hold at a time.
void large_values() {
  constexpr std::size_t kCount = 10'000'000;
  const auto here = troupe::put(made(kCount, 1));
  check(far().task<total>(here).get(kLimit) == kCount, "a value that was put here is read there");
  check(near().task<total>(here).get(kLimit) == kCount, "and here");
  const auto there = far().task<made>(kCount, 2.0F);
  check(total(there.get(kLimit)) == 2 * kCount, "a value that was made there is read here");
  check(near().task<total>(there).get(kLimit) == 2 * kCount, "and by a task here");
  auto keeper = far().spawn<Keeper>();
  check(keeper.call<&Keeper::keep>(made(kCount, 3)).get(kLimit) == 3 * kCount,
        "an argument by value arrives");
  check(total(keeper.call<&Keeper::give>().get(kLimit)) == 3 * kCount, "and comes back");
  for (int i = 0; i < 8; ++i) {
    check(far().task<total>(troupe::put(made(kCount, 1))).get(kLimit) == kCount,
          "what is let go makes room");
    check(total(far().task<made>(kCount, 1.0F).get(kLimit)) == kCount, "here and there");
  }
}

void short_tasks() {
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < 3'000; ++i) refs.push_back(far().task<twice>(i));
  for (int i = 0; i < 3'000; ++i)
    check(refs[static_cast<std::size_t>(i)].get(kLimit) == 2 * i, "short tasks far away");
  // A long one in their midst: what stands behind it in line at the one far CPU comes back, and is
  // cancelled or runs.
  refs.clear();
  auto slow = far().task<sleeps>(1'000);
  for (int i = 0; i < 500; ++i) refs.push_back(far().task<twice>(i));
  for (std::size_t i = 250; i < 500; ++i) refs[i].cancel();
  for (std::size_t i = 0; i < 250; ++i)
    check(refs[i].get(kLimit) == 2 * static_cast<int>(i), "tasks behind a long one");
  int cancelled = 0;
  for (std::size_t i = 250; i < 500; ++i)
    cancelled += refs[i].wait_for(kLimit) && refs[i].failure() ? 1 : 0;
  check(cancelled > 0, "some were cancelled");
  check(slow.get(kLimit) == 1'000, "the long one");
}

int across() {
  large_values();
  short_tasks();
  return failures;
}

/// On a host without a node: large values go in messages, and come into this process's own memory.
int from_afar() {
  constexpr std::size_t kCount = 10'000'000;
  check(near().task<total>(troupe::put(made(kCount, 1))).get(kLimit) == kCount,
        "a value goes in a message");
  for (int i = 0; i < 6; ++i) {
    const auto there = near().task<made>(kCount, 2.0F);
    const auto values = there.get(kLimit);
    check(total(values) == 2 * kCount, "a value that was made there is read here");
    check(there.get().data() == values.data(), "once");
    check(near().task<total>(there).get(kLimit) == 2 * kCount, "and where it was made");
  }
  return failures;
}

int lost() {
  const auto there = far().task<made>(2 * kMiB, 1.0F);
  there.wait_for(kLimit);
  std::vector<troupe::Ref<Floats>> more;
  for (int i = 0; i < 240; ++i) more.push_back(far().task<made>(kMiB / 32, 1.0F));
  for (const auto& ref : more) ref.wait_for(kLimit);
  // Ends with its node; with tries left it would wait for that one to come back.
  const auto beside =
      troupe::with({.retries = 0, .labels = {{"host", "far"}}}).task<sleeps>(60'000);
  std::cout << "made" << std::endl;
  beside.wait_for(kLimit);
  try {
    there.get(kLimit);
    check(false, "it is lost");
  } catch (const troupe::ObjectLost& error) {
    std::cout << "ObjectLost: " << error.what() << std::endl;
  }
  const auto began = std::chrono::steady_clock::now();
  for (const auto& ref : more) {
    try {
      ref.get(kLimit);
      check(false, "it is lost too");
    } catch (const troupe::ObjectLost&) {
    }
  }
  // Waiting for each, if only for a quarter of a second, would take a minute.
  check(std::chrono::steady_clock::now() - began < kLimit, "what the head has said is asked once");
  return failures;
}

/// Ends its process once it has been written to the object store, and before its caller is told.
struct LastWords {
  explicit LastWords(std::string said) : text(std::move(said)) {}
  LastWords() = default;
  LastWords(LastWords&& other) noexcept : text(std::exchange(other.text, {})) {}
  LastWords& operator=(LastWords&& other) noexcept {
    std::swap(text, other.text);
    return *this;
  }
  ~LastWords() {
    if (text.empty()) return;
    std::this_thread::sleep_for(200ms);
    ::raise(SIGKILL);
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text);
  }
  std::string text;
};

struct Maker {
  Floats make(int milliseconds) const {
    sleeps(milliseconds);
    return made(kMiB / 4, 1);
  }
  double take(const Floats& values, int milliseconds) const {
    sleeps(milliseconds);
    return total(values);
  }
  LastWords last_words() const { return LastWords(std::string(kMiB, 'x')); }
  int pid() const { return getpid(); }
};
Floats made_late(int milliseconds) { return Maker().make(milliseconds); }

/// Calls with large arguments and results, of which some are cancelled, some let go before they are
/// answered, and all the rest meets a SIGKILL.
void calls_that_come_to_nothing(int round) {
  auto maker = troupe::spawn<Maker>();
  const int pid = maker.call<&Maker::pid>().get(kLimit);
  std::vector<troupe::Ref<Floats>> results;
  std::vector<troupe::Ref<double>> totals;
  for (int i = 0; i < 12; ++i) {
    results.push_back(maker.call<&Maker::make>(i % 3));
    totals.push_back(maker.call<&Maker::take>(made(kMiB / 4, 1), 1));
    results.push_back(troupe::task<made_late>(i % 3));
  }
  for (std::size_t i = 0; i < results.size(); i += 4) results[i].cancel();
  for (std::size_t i = 0; i < totals.size(); i += 4) totals[i].cancel();
  results.erase(results.begin(), results.begin() + 8);
  std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
  ::kill(pid, SIGKILL);
  for (auto& result : results) result.wait_for(kLimit);
}

/// Results of processes on another node that die, told and untold. The job has two values of 1 MiB
/// left there in the end, and one of 12 MiB: a node that says so has seen the end of all others.
int lets_go_afar() {
  std::vector<troupe::Ref<Floats>> kept;
  for (int i = 0; i < 2; ++i) {
    auto maker = far().spawn<Maker>();
    const int pid = maker.call<&Maker::pid>().get(kLimit);
    kept.push_back(maker.call<&Maker::make>(0));
    check(kept.back().wait_for(kLimit), "it is told");
    ::kill(pid, SIGKILL);
  }
  for (int i = 0; i < 3; ++i) {
    auto maker = far().spawn<Maker>();
    try {
      maker.call<&Maker::last_words>().get(kLimit);
      check(false, "it died before it answered");
    } catch (const troupe::ActorDied&) {
    }
  }
  const auto last = far().task<made>(3 * kMiB, 1.0F);
  check(last.wait_for(kLimit), "the last one");
  static volatile std::sig_atomic_t goes_on = 0;
  std::signal(SIGUSR1, [](int) { goes_on = 1; });  // once the rest has left the nodes
  std::cout << "let go" << std::endl;
  while (goes_on == 0) usleep(10'000);
  for (const auto& ref : kept) check(total(ref.get(kLimit)) == kMiB / 4, "what was told stays");
  std::cout << "read" << std::endl;
  return failures;
}

/// Writes to what others read.
int overwrites() {
  const auto there = near().task<made>(kMiB, 1.0F);
  auto values = there.get(kLimit);
  const_cast<float*>(values.data())[0] = 2;
  return failures;
}

/// On the far host, of whose link the test disposes: what was written on the near one is read while
/// it is cut.
int over_a_cut_link() {
  constexpr std::size_t kCount = 2 * kMiB;
  const auto first = near().task<made>(kCount, 2.0F);
  const auto there = near().task<made>(kCount, 1.0F);
  check(total(first.get(kLimit)) == 2 * kCount, "where that store is to be reached is known here");
  check(there.wait_for(kLimit), "it is made");
  std::cout << "made" << std::endl;
  static volatile std::sig_atomic_t is_cut = 0;
  std::signal(SIGUSR1, [](int) { is_cut = 1; });
  while (is_cut == 0) usleep(10'000);
  std::cout << "reads" << std::endl;
  check(total(there.get(kLimit)) == kCount, "a value on a living node outlives a link");
  std::cout << "read" << std::endl;
  return failures;
}

/// The job goes on, and has one value left: a node that says so has seen the end of all others.
int lets_go() {
  for (int round = 0; round < 8; ++round) calls_that_come_to_nothing(round);
  for (int i = 0; i < 2; ++i) {
    auto maker = troupe::spawn<Maker>();
    try {
      maker.call<&Maker::last_words>().get(kLimit);
      check(false, "it died before it answered");
    } catch (const troupe::ActorDied&) {
    }
  }
  const auto last = troupe::put(made(3 * kMiB, 1));
  std::cout << "let go" << std::endl;
  std::this_thread::sleep_for(kLimit);
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    const auto cluster = troupe::init(argc, argv);
    if (what == "across") return across();
    if (what == "from_afar") return from_afar();
    if (what == "lost") return lost();
    if (what == "overwrites") return overwrites();
    if (what == "over_a_cut_link") return over_a_cut_link();
    if (what == "lets_go") return lets_go();
    if (what == "lets_go_afar") return lets_go_afar();
    std::cerr << "no such thing to do: " << what << '\n';
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << '\n';
  }
  return 2;
}
