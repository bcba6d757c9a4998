// Values that lie in the object store: put, arguments, results, and what becomes of them when
// somebody ends.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "functions.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

using Floats = Array<float>;

Floats floats(std::size_t count, float value = 1.0F) {
  return Floats(std::vector<float>(count, value));
}
double total(const Floats& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double total_of(Ref<Floats> values) { return total(values.get()); }
Floats made(std::size_t count, float value) { return floats(count, value); }
Floats doubled(const Floats& values) {
  std::vector<float> out(values.begin(), values.end());
  for (auto& value : out) value *= 2;
  return Floats(std::move(out));
}

struct Keeper {
  double keep(Floats values) {
    kept = std::move(values);
    return total(kept);
  }
  double again() const { return total(kept); }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(kept.data()); }
  int overwrite() {
    const_cast<float*>(kept.data())[0] = 5;  // a bug that must not go unseen
    return 0;
  }
  int pid() const { return getpid(); }
  Ref<Floats> own(std::size_t count) { return put(floats(count, 3)); }
  Floats kept;
};

/// Its first call waits; what comes after stands behind that.
struct Waiter {
  int wait(Actor<Counter> gate) { return waits_for_gate(std::move(gate)); }
  double total_of(const Floats& values) const { return total(values); }
  double total_of_two(const Floats& first, const Floats& second) const {
    return total(first) + total(second);
  }
};

/// Its store finds no disk to write to: the folder for that is gone by the time that memory is
/// full.
Cluster init_without_disk(std::uint64_t store_bytes) {
  auto folder = (std::filesystem::temp_directory_path() / "troupe-no-disk-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()));
  auto cluster = init({.cpus = 2, .object_store_bytes = store_bytes, .spill_directory = folder});
  put(floats(kMiB));  // with its first object the store makes its own folder there
  std::filesystem::remove_all(folder);
  return cluster;
}

std::uint64_t pinned_bytes(const Cluster& cluster) {
  const auto node = nlohmann::json::parse(cluster.status_json())["nodes"][0];
  return node.contains("store") ? node["store"]["pinned"].get<std::uint64_t>() : 0;
}

[[maybe_unused]] std::size_t resident_kib(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Private_Dirty:")) return std::stoul(line.substr(14));
  }
  return 0;
}

}  // namespace

TEST_CASE("a large value is put once, and read without a copy by whoever needs it",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2});
  const auto ref = put(floats(4 * kMiB));
  const auto first = ref.get();
  CHECK(first.data() == ref.get().data());
  CHECK(total(first) == 4.0 * kMiB);
  CHECK(task<total>(ref).get(kGuard) == 4.0 * kMiB);
  CHECK(task<total_of>(ref).get(kGuard) == 4.0 * kMiB);
  auto keeper = spawn<Keeper>();
  CHECK(keeper.call<&Keeper::keep>(ref).get(kGuard) == 4.0 * kMiB);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which have memory of their own
  CHECK(resident_kib(keeper.call<&Keeper::pid>().get(kGuard)) <
        8 * 1024);  // 16 MiB are not its own
#endif
}

TEST_CASE("large arguments and results by value keep the order of calls",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2});
  auto keeper = spawn<Keeper>();
  for (int i = 0; i < 40; ++i) keeper.call<&Keeper::pid>().get(kGuard);  // a ring by now
  std::vector<Ref<double>> totals;
  for (int i = 1; i <= 20; ++i) {
    totals.push_back(keeper.call<&Keeper::keep>(floats(100'000, static_cast<float>(i))));
    totals.push_back(keeper.call<&Keeper::again>());
  }
  for (int i = 1; i <= 20; ++i) {
    CHECK(totals[static_cast<std::size_t>(2 * i - 2)].get(kGuard) == 100'000.0 * i);
    CHECK(totals[static_cast<std::size_t>(2 * i - 1)].get(kGuard) == 100'000.0 * i);
  }
  const auto chain = task<doubled>(task<doubled>(task<made>(std::size_t{200'000}, 1.5F)));
  CHECK(total(chain.get(kGuard)) == 200'000 * 6.0);
}

TEST_CASE("a view outlives its ref, and an actor's keeps what its caller has let go",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2, .object_store_bytes = 64 * kMiB});
  auto keeper = spawn<Keeper>();
  auto ref = std::make_unique<Ref<Floats>>(put(floats(2 * kMiB, 2)));
  keeper.call<&Keeper::keep>(*ref).get(kGuard);
  const auto mine = ref->get();
  ref.reset();
  for (int i = 0; i < 40; ++i) put(floats(2 * kMiB, 9));  // five times what the store holds
  CHECK(total(mine) == 4.0 * kMiB);
  CHECK(keeper.call<&Keeper::again>().get(kGuard) == 4.0 * kMiB);
}

TEST_CASE("values whose refs are gone leave the store, results and arguments too",
          "[runtime][session][store]") {
  auto cluster = init_without_disk(48 * kMiB);
  for (int i = 0; i < 30; ++i) {
    put(floats(2 * kMiB));
    task<made>(std::size_t{2 * kMiB}, 1.0F).get(kGuard);
    task<total>(floats(2 * kMiB)).get(kGuard);
  }
  auto keeper = spawn<Keeper>();
  for (int i = 0; i < 30; ++i)
    CHECK(keeper.call<&Keeper::own>(2 * kMiB).get(kGuard).get(kGuard).size() == 2 * kMiB);
}

TEST_CASE("what does not fit in memory goes to the disk and comes back",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2, .object_store_bytes = 32 * kMiB});
  std::vector<Ref<Floats>> refs;
  for (int i = 0; i < 12; ++i) refs.push_back(put(floats(2 * kMiB, static_cast<float>(i))));
  for (int i = 0; i < 12; ++i)
    CHECK(total(refs[static_cast<std::size_t>(i)].get(kGuard)) == 2.0 * kMiB * i);
}

TEST_CASE("results that do not fit together are read one after the other",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2, .object_store_bytes = 20 * kMiB});
  for (int round = 0; round < 3; ++round) {
    std::vector<Ref<Floats>> refs;
    for (int i = 0; i < 6; ++i)
      refs.push_back(task<made>(std::size_t{2 * kMiB}, static_cast<float>(i)));
    for (int i = 0; i < 6; ++i)
      CHECK(total(refs[static_cast<std::size_t>(i)].get(kGuard)) == 2.0 * kMiB * i);
  }
}

TEST_CASE("arguments of calls whose turn has not come take no memory from others",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 4, .object_store_bytes = 20 * kMiB});
  auto gate = spawn<Counter>(0);
  auto waiter = spawn<Waiter>();
  const auto waits = waiter.call<&Waiter::wait>(gate);
  const auto first = task<made>(std::size_t{2 * kMiB}, 1.0F),
             second = task<made>(std::size_t{2 * kMiB}, 2.0F);
  REQUIRE((first.wait_for(kGuard) && second.wait_for(kGuard)));
  const auto first_total = waiter.call<&Waiter::total_of>(first);
  const auto second_total = waiter.call<&Waiter::total_of>(second);
  for (const auto end = std::chrono::steady_clock::now() + kGuard;
       pinned_bytes(cluster) < 16 * kMiB;) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(50ms);
  }
  CHECK(put(floats(2 * kMiB, 3)).get(kGuard).size() == 2 * kMiB);
  gate.call<&Counter::add>(1).get(kGuard);
  CHECK(waits.get(kGuard) == 1);
  CHECK(first_total.get(kGuard) == 2.0 * kMiB);
  CHECK(second_total.get(kGuard) == 4.0 * kMiB);
}

TEST_CASE("calls with two large arguments each get both, in a store that holds those of one",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 4, .object_store_bytes = 20 * kMiB});
  auto gate = spawn<Counter>(0);
  const std::vector<Actor<Waiter>> waiters{spawn<Waiter>(), spawn<Waiter>()};
  std::vector<Ref<Floats>> values;
  for (int i = 0; i < 4; ++i) values.push_back(put(floats(2 * kMiB, static_cast<float>(i))));
  std::vector<Ref<int>> waits;
  std::vector<Ref<double>> totals;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    waits.push_back(waiters[i].call<&Waiter::wait>(gate));
    totals.push_back(waiters[i].call<&Waiter::total_of_two>(values[2 * i], values[2 * i + 1]));
  }
  // So both have to wait.
  auto first = put(floats(2 * kMiB)).get(kGuard), second = put(floats(2 * kMiB)).get(kGuard);
  gate.call<&Counter::add>(1).get(kGuard);
  for (auto& wait : waits) CHECK(wait.get(kGuard) == 1);
  CHECK(total(first) + total(second) == 4.0 * kMiB);
  first = second = {};
  CHECK(totals[0].get(kGuard) == 2.0 * kMiB);
  CHECK(totals[1].get(kGuard) == 10.0 * kMiB);
}

TEST_CASE("a get that has timed out holds no memory when its value comes",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2, .object_store_bytes = 20 * kMiB});
  const auto late = task<made>(std::size_t{2 * kMiB}, 1.0F);
  REQUIRE(late.wait_for(kGuard));
  auto first = put(floats(2 * kMiB, 2)).get(kGuard), second = put(floats(2 * kMiB, 3)).get(kGuard);
  CHECK_THROWS_AS(late.get(100ms), TimedOut);  // it is on the disk, and there is no room for it
  first = {};
  const auto third = put(floats(2 * kMiB, 4)).get(kGuard);  // behind it in the line for memory
  CHECK(total(second) + total(third) == 14.0 * kMiB);
  second = {};
  CHECK(total(late.get(kGuard)) == 2.0 * kMiB);
}

TEST_CASE("a store that is full and cannot spill says so with numbers, and goes on",
          "[runtime][session][store]") {
  auto cluster = init_without_disk(32 * kMiB);
  std::vector<Ref<Floats>> refs;
  try {
    for (int i = 0; i < 12; ++i) refs.push_back(put(floats(2 * kMiB)));
    FAIL("96 MiB cannot fit in 32");
  } catch (const StoreFull& full) {
    CHECK_THAT(full.what(), Catch::Contains("MiB"));
  }
  CHECK(refs.size() >= 3);
  CHECK_THROWS_AS(put(floats(16 * kMiB)), TooLarge);
  CHECK_THROWS_AS(task<made>(std::size_t{2 * kMiB}, 1.0F).get(kGuard), StoreFull);
  refs.clear();
  CHECK(put(floats(2 * kMiB)).get().size() == 2 * kMiB);
}

TEST_CASE("writing through a view ends who does it, is told to who called, and nobody else sees it",
          "[runtime][session][store][failure]") {
  // That of Catch2, which worker processes would inherit, and which Troupe would leave alone.
  ::signal(SIGSEGV, SIG_DFL);
  auto cluster = init({.cpus = 2});
  const auto ref = put(floats(kMiB));
  auto keeper = spawn<Keeper>();
  keeper.call<&Keeper::keep>(ref).get(kGuard);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  try {
    keeper.call<&Keeper::overwrite>().get(kGuard);
    FAIL("it wrote through a view");
  } catch (const ActorDied& died) {
    CHECK(died.signal() == SIGSEGV);
    CHECK_THAT(died.what(), Catch::Contains("has written to a value of the object store") &&
                                Catch::Contains("make a troupe::NewArray and write to that"));
  }
#endif
  CHECK(total(ref.get()) == 1.0 * kMiB);
}

TEST_CASE("a value goes with the actor that owns it", "[runtime][session][store][failure]") {
  auto cluster = init({.cpus = 2});
  auto keeper = spawn<Keeper>();
  const auto ref = keeper.call<&Keeper::own>(kMiB).get(kGuard);
  const auto view = ref.get(kGuard);
  keeper.kill();
  const auto call_until_it_is_gone = [&] {
    for (const auto end = std::chrono::steady_clock::now() + kGuard;
         std::chrono::steady_clock::now() < end;)
      keeper.call<&Keeper::pid>().get(kGuard);
  };
  CHECK_THROWS_AS(call_until_it_is_gone(), ActorDied);
  CHECK(total(view) == 3.0 * kMiB);
}

TEST_CASE("an array that is written in place is read by others as it was written",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2});
  NewArray<float> pixels(3 * kMiB);
  std::fill(pixels.values().begin(), pixels.values().end(), 0.5F);
  const auto ref = put(std::move(pixels));
  CHECK(task<total>(ref).get(kGuard) == 1.5 * kMiB);
  { const NewArray<float> given_up(3 * kMiB); }
}

TEST_CASE("threads that put, call and get large values at once get their own",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2, .object_store_bytes = 64 * kMiB});
  auto keeper = spawn<Keeper>();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto ref = put(floats(kMiB / 2, static_cast<float>(t)));
        const double expected = 0.5 * kMiB * t;
        if (keeper.call<&Keeper::keep>(ref).get(kGuard) != expected) ++wrong;
        if (total(ref.get(kGuard)) != expected) ++wrong;
        if (task<total>(floats(kMiB / 2, static_cast<float>(t))).get(kGuard) != expected) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("what is left of a session that has ended harms nobody in the next one",
          "[runtime][session][store]") {
  Floats kept;
  Ref<Floats> mine, from_task, from_actor;
  Actor<Keeper> keeper;
  {
    auto cluster = init({.cpus = 2});
    mine = put(floats(kMiB, 1));
    kept = mine.get();
    from_task = task<made>(kMiB, 2.0F);
    from_task.get(kGuard);
    keeper = spawn<Keeper>();
    from_actor = keeper.call<&Keeper::own>(kMiB).get(kGuard);
    from_actor.get(kGuard);
  }
  CHECK(total(kept) == 1.0 * kMiB);
  auto cluster = init({.cpus = 2});
  auto fresh = spawn<Keeper>();
  const auto other = put(floats(kMiB, 7));
  CHECK(fresh.call<&Keeper::keep>(other).get(kGuard) == 7.0 * kMiB);
  CHECK(total(mine.get()) == 1.0 * kMiB);  // it is still in view
  for (const auto* ref : {&from_task, &from_actor}) {
    try {
      const double was = total(ref->get(kGuard));
      CHECK((was == 2.0 * kMiB || was == 3.0 * kMiB));
    } catch (const Disconnected&) {
    }
  }
  CHECK_THROWS_AS(keeper.call<&Keeper::pid>().get(kGuard), Disconnected);
  CHECK_THROWS_AS(task<total>(mine).get(kGuard), Disconnected);
  CHECK_THROWS_AS(task<total_of>(from_actor).get(kGuard), Error);
  kept = {};
  mine = from_task = from_actor = {};
  keeper = {};
  CHECK(fresh.call<&Keeper::again>().get(kGuard) == 7.0 * kMiB);
  CHECK(task<total>(other).get(kGuard) == 7.0 * kMiB);
  CHECK(spawn<Keeper>().call<&Keeper::keep>(other).get(kGuard) == 7.0 * kMiB);
}

TEST_CASE("an array may outlive its cluster", "[runtime][session][store]") {
  Floats kept;
  {
    auto cluster = init({.cpus = 1});
    kept = put(floats(kMiB, 4)).get();
    NewArray<float> unfinished(kMiB);
  }
  CHECK(total(kept) == 4.0 * kMiB);
  kept = {};
}

TEST_CASE("whether a large value is there can be asked without bringing it",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 1});
  const auto ref = task<made>(kMiB, 1.0F);
  REQUIRE(ref.wait_for(kGuard));
  CHECK_FALSE(ref.failure());
  CHECK(ref.try_get().value().size() == kMiB);
}
