// A driver for the tests of large values between hosts. Nodes carry the label host=near (where this driver runs) or host=far.
#include <chrono>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include <unistd.h>
#include <troupe/troupe.hpp>

namespace {

using Floats = troupe::Array<float>;
using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr auto kLimit = 30s;

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
  check(keeper.call<&Keeper::keep>(made(kCount, 3)).get(kLimit) == 3 * kCount, "an argument by value arrives");
  check(total(keeper.call<&Keeper::give>().get(kLimit)) == 3 * kCount, "and comes back");
  for (int i = 0; i < 8; ++i) {
    check(far().task<total>(troupe::put(made(kCount, 1))).get(kLimit) == kCount, "what is let go makes room");
    check(total(far().task<made>(kCount, 1.0F).get(kLimit)) == kCount, "here and there");
  }
}

void short_tasks() {
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < 3'000; ++i) refs.push_back(far().task<twice>(i));
  for (int i = 0; i < 3'000; ++i) check(refs[static_cast<std::size_t>(i)].get(kLimit) == 2 * i, "short tasks far away");
  // A long one in their midst: what stands behind it in line at the one far CPU comes back, and is cancelled or runs.
  refs.clear();
  auto slow = far().task<sleeps>(1'000);
  for (int i = 0; i < 500; ++i) refs.push_back(far().task<twice>(i));
  for (std::size_t i = 250; i < 500; ++i) refs[i].cancel();
  for (std::size_t i = 0; i < 250; ++i)
    check(refs[i].get(kLimit) == 2 * static_cast<int>(i), "tasks behind a long one");
  int cancelled = 0;
  for (std::size_t i = 250; i < 500; ++i) cancelled += refs[i].wait_for(kLimit) && refs[i].failure() ? 1 : 0;
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
  check(near().task<total>(troupe::put(made(kCount, 1))).get(kLimit) == kCount, "a value goes in a message");
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
  const auto beside = far().task<sleeps>(60'000);  // ends with its node
  std::cout << "made" << std::endl;
  beside.wait_for(kLimit);
  try {
    there.get(kLimit);
    check(false, "it is lost");
  } catch (const troupe::ObjectLost& error) {
    std::cout << "ObjectLost: " << error.what() << std::endl;
  }
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
    std::cerr << "no such thing to do: " << what << '\n';
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << '\n';
  }
  return 2;
}
