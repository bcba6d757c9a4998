// A driver whose worker processes print: does what its argument says.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <troupe/troupe.hpp>

#include "guard.hpp"

namespace {

using troupe::test::kGuard;

/// Nothing is flushed, and the last line has no end.
int prints_and_dies(int by) {
  std::printf("with printf\n");
  std::cout << "with cout\n"
            << "begun";
  std::cout << " and ended\n";
  std::raise(by);
  return 0;
}

int greets(int node) {
  std::cout << "hello from a task on node " << node << std::endl;
  return getpid();
}

int floods(int lines) {
  for (int i = 0; i < lines; ++i) std::printf("line %d of a flood that nobody reads\n", i);
  return lines;
}

int finds(int n) {
  std::printf("found %d\n", n);
  return n;
}
int loses(int n) {
  std::cout << "lost " << n << std::endl;
  return n;
}
int searches(int n) { return n; }

int stops_within_a_line(bool parted) {
  if (!parted) std::printf("of stdio, without an end");
  if (parted) std::cout << std::nounitbuf << "of iostreams, without an end";
  return 0;
}

struct Speaker {
  void says(const std::string& line) { std::cout << line << std::endl; }
  void speaks() { std::cerr << "an actor speaks" << std::endl; }
  void counts() { std::cout << "rank " << troupe::this_gang()->rank() << " counts" << std::endl; }
  /// The same line in each process, and one of its own, once all ranks are there.
  void repeats() {
    auto& gang = *troupe::this_gang();
    auto& keys = gang.rendezvous();
    keys.set(std::to_string(gang.rank()), "is there");
    for (int rank = 0; rank < gang.size(); ++rank) keys.get(std::to_string(rank), kGuard);
    std::cout << "the same line" << std::endl;
    std::cout << "line of " << getpid() << std::endl;
  }
  int dies(int by) { return prints_and_dies(by); }
  /// A line with a pause in it.
  void hesitates() {
    std::cout << "one line " << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    std::cout << "in two pieces" << std::endl;
  }
  void takes_leave() { std::cout << "last words" << std::endl; }
};

/// What its caller is told of a process that printed, and was killed.
template <class Call>
int report(Call call) {
  try {
    call().get(kGuard);
  } catch (const troupe::Error& error) {
    std::cout << "failed: " << error.what() << std::endl;
    return 0;
  }
  return 1;
}

int dies(troupe::Cluster&) {
  return report([] { return troupe::with({.retries = 0}).task<prints_and_dies>(SIGKILL); });
}

int actor_dies(troupe::Cluster&) {
  const auto speaker = troupe::spawn<Speaker>();
  return report([&] { return speaker.call<&Speaker::dies>(SIGABRT); });
}

int rank_dies(troupe::Cluster&) {
  const auto ranks = troupe::gang<Speaker>({.size = 2});
  return report([&] { return ranks.rank(1).call<&Speaker::dies>(SIGKILL); });
}

/// The process of a task, an actor and a rank each print on two nodes.
int speaks(troupe::Cluster&) {
  for (const int node : {1, 2}) {
    const auto number = std::to_string(node);
    const auto there = troupe::with({.labels = {{"troupe.node", number}}});
    std::cout << "pid " << there.task<greets>(node).get(kGuard) << std::endl;
  }
  const auto actor = troupe::spawn<Speaker>();
  actor.call<&Speaker::speaks>().get(kGuard);
  const auto ranks = troupe::gang<Speaker>({.size = 2});
  for (auto& done : ranks.all<&Speaker::counts>()) done.get(kGuard);
  return 0;
}

int four_repeat(troupe::Cluster&) {
  const auto ranks = troupe::gang<Speaker>({.size = 4});
  troupe::get(ranks.all<&Speaker::repeats>(), kGuard);
  return 0;
}

int flood(troupe::Cluster&) {
  troupe::task<floods>(200'000).get(kGuard);
  return 0;
}

/// Short tasks, one after the other, of which some print.
int changes(troupe::Cluster&) {
  std::vector<troupe::Ref<int>> done;
  for (int n = 0; n < 500; ++n) {
    done.push_back(troupe::task<finds>(n));
    for (int more = 0; more < n % 3; ++more) done.push_back(troupe::task<searches>(n));
    if (n % 2 == 0) done.push_back(troupe::task<loses>(n));
  }
  troupe::get(done);
  return 0;
}

int stops(bool parted) { return troupe::task<stops_within_a_line>(parted).get(); }

volatile std::sig_atomic_t signals = 0;

void wait_for_signal(int number) {
  while (signals < number) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

/// Goes on with a signal, once somebody follows its actor.
int hesitates(troupe::Cluster&) {
  const auto actor = troupe::with({.name = "speaker"}).spawn<Speaker>();
  actor.call<&Speaker::speaks>().get(kGuard);
  std::cout << "begins" << std::endl;
  wait_for_signal(1);
  actor.call<&Speaker::hesitates>().get(kGuard);
  actor.call<&Speaker::takes_leave>().get(kGuard);
  return 0;
}

/// An actor has the last word, after a signal.
int ends_with_a_line(troupe::Cluster&) {
  const auto actor = troupe::spawn<Speaker>();
  actor.call<&Speaker::speaks>().get(kGuard);
  std::cout << "ready" << std::endl;
  wait_for_signal(1);
  actor.call<&Speaker::takes_leave>().get(kGuard);
  std::cout << "leaves" << std::endl;
  return 0;
}

int prints_bytes() {
  std::cout << "\xff\xfe and \xc3\x28" << std::endl;
  return 0;
}

/// Something is done to its log between the lines, each of which waits for a signal.
int logs_change(troupe::Cluster&) {
  const auto speak = [](const troupe::Actor<Speaker>& actor, const std::string& line) {
    actor.call<&Speaker::says>(line).get(kGuard);
  };
  const auto actor = troupe::spawn<Speaker>();
  speak(actor, "the first line");
  wait_for_signal(1);
  speak(actor, "the second line");
  wait_for_signal(2);
  speak(troupe::spawn<Speaker>(), "the line of another process");
  return 0;
}

/// Holds an actor until this process is killed.
int waits(troupe::Cluster&) {
  const auto actor = troupe::with({.name = "speaker"}).spawn<Speaker>();
  actor.call<&Speaker::speaks>().get(kGuard);
  std::cout << "waiting" << std::endl;
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "parted" || what == "stops_parted") std::ios::sync_with_stdio(false);
  std::signal(SIGUSR1, [](int) { signals = signals + 1; });
  auto cluster = troupe::init(argc, argv, {.worker_output = what != "speaks_unheard"});
  if (what == "dies" || what == "parted") return dies(cluster);
  if (what == "actor_dies") return actor_dies(cluster);
  if (what == "rank_dies") return rank_dies(cluster);
  if (what == "speaks" || what == "speaks_unheard") return speaks(cluster);
  if (what == "four_repeat") return four_repeat(cluster);
  if (what == "flood") return flood(cluster);
  if (what == "changes") return changes(cluster);
  if (what == "stops" || what == "stops_parted") return stops(what != "stops");
  if (what == "hesitates") return hesitates(cluster);
  if (what == "ends_with_a_line") return ends_with_a_line(cluster);
  if (what == "waits") return waits(cluster);
  if (what == "logs_change") return logs_change(cluster);
  if (what == "bytes") return troupe::task<prints_bytes>().get();
  std::cerr << "no such thing to do: " << what << '\n';
  return 2;
}
