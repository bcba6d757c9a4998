// A driver for the tests of real clusters: does what its argument says, and prints what came of it.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <latch>
#include <stop_token>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <troupe/troupe.hpp>

namespace {

int process_id() { return getpid(); }
int parent_id() { return getppid(); }

struct Holder {
  int pid() const { return getpid(); }
  int parent() const { return getppid(); }  // its node's agent
  int node() const { return static_cast<int>(troupe::this_gang()->node()); }
  /// Starts a program in a session of its own, as user code may.
  int starts_a_sleeper() {
    const int child = fork();
    if (child == 0) {
      setsid();
      execlp("sleep", "sleep", "600", nullptr);
      _exit(127);
    }
    return child;
  }
  /// Starts one as daemons do: without an environment, in a session of its own, and left by its
  /// parent.
  int starts_a_daemon() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return 0;
    const int between = fork();
    if (between == 0) {
      setsid();
      const int daemon = fork();
      if (daemon == 0) execle("/bin/sleep", "sleep", "600", nullptr, static_cast<char**>(nullptr));
      (void)!write(ends[1], &daemon, sizeof daemon);
      _exit(0);
    }
    int daemon = 0;
    waitpid(between, nullptr, 0);
    (void)!read(ends[0], &daemon, sizeof daemon);
    close(ends[0]);
    close(ends[1]);
    return daemon;
  }
  long most_open_files() const {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return static_cast<long>(limit.rlim_cur);
  }
  int sleeps() {
    sleep(600);
    return 0;
  }
};

void print(const std::string& name, int value) { std::cout << name << ' ' << value << std::endl; }

/// Four actors of one CPU each, at the same time: on two nodes of two CPUs that takes both.
int use_all(troupe::Cluster&) {
  std::vector<troupe::Actor<Holder>> holders;
  for (int i = 0; i < 4; ++i)
    holders.push_back(troupe::with({.cpus = 1, .spread = true}).spawn<Holder>());
  for (auto& holder : holders) print("parent", holder.call<&Holder::parent>().get());
  return 0;
}

/// Holds an actor, with a program that it started, until somebody ends this process.
int hold(const troupe::Options& options) {
  auto holder = troupe::with(options).spawn<Holder>();
  print("actor", holder.call<&Holder::pid>().get());
  print("sleeper", holder.call<&Holder::starts_a_sleeper>().get());
  print("daemon", holder.call<&Holder::starts_a_daemon>().get());
  std::cout << "holding" << std::endl;
  try {
    holder.call<&Holder::sleeps>().get();
  } catch (const troupe::Error& error) {
    std::cout << "failed: " << error.what() << std::endl;
    return 3;
  }
  return 0;
}

/// An actor holds the one CPU that a task of the same program waits for, until somebody ends this
/// process.
int holds_itself(troupe::Cluster&) {
  const auto holder = troupe::with({.cpus = 1}).spawn<Holder>();
  troupe::task<parent_id>().get();
  return 0;
}

int gang(troupe::Cluster&) {
  auto ranks = troupe::gang<Holder>({.size = 4, .strategy = troupe::Spread});
  for (auto& pid : ranks.all<&Holder::pid>()) print("rank", pid.get());
  return 0;
}

/// Until it is killed.
int hold_gang(troupe::Cluster&) {
  const auto ranks = troupe::gang<Holder>({.size = 2});
  for (auto& pid : ranks.all<&Holder::pid>()) pid.get();
  std::cout << "placed" << std::endl;
  for (;;) pause();
}

/// A task, an actor and a rank on each of two nodes, by the node's number, and a task for a third
/// node.
int by_node(troupe::Cluster&) {
  for (const std::string number : {"1", "2"}) {
    const auto there = troupe::with({.cpus = 0, .labels = {{"troupe.node", number}}});
    print("task " + number, there.task<parent_id>().get());
    print("actor " + number, there.spawn<Holder>().call<&Holder::parent>().get());
    const auto ranks =
        troupe::gang<Holder>({.size = 1, .each = {.cpus = 0, .labels = {{"troupe.node", number}}}});
    print("rank " + number, ranks.rank(0).call<&Holder::node>().get());
  }
  try {
    troupe::with({.cpus = 0, .labels = {{"troupe.node", "3"}}}).task<parent_id>().get();
  } catch (const troupe::Impossible& error) {
    std::cout << "impossible: " << error.what() << std::endl;
  }
  return 0;
}

/// Sixty actors at once.
int many(troupe::Cluster&) {
  std::vector<troupe::Actor<Holder>> holders;
  for (int i = 0; i < 60; ++i) holders.push_back(troupe::with({.cpus = 0.01}).spawn<Holder>());
  long files = 0;
  for (auto& holder : holders) files = holder.call<&Holder::most_open_files>().get();
  print("files", static_cast<int>(files));
  print("own files", static_cast<int>(Holder().most_open_files()));
  return 0;
}

std::string large(std::size_t bytes) { return std::string(bytes, 'x'); }
int size_of(const std::string& text) { return static_cast<int>(text.size()); }

/// A large value of one process for another one, that this process never looks at.
int stored(troupe::Cluster&) {
  print("bytes", troupe::task<size_of>(troupe::task<large>(std::size_t{300'000})).get());
  return 0;
}

/// A value of its own and one of a worker process, until it is killed.
int holds_values(troupe::Cluster&) {
  const auto own = troupe::put(large(400'000));
  const auto made = troupe::task<large>(std::size_t{300'000});
  print("bytes", troupe::task<size_of>(made).get());
  std::cout << "holding" << std::endl;
  for (;;) pause();
}

int lasts(int milliseconds) {
  std::cout << "begun" << std::endl;
  usleep(1000 * static_cast<useconds_t>(milliseconds));
  return milliseconds;
}

int waits_for_lasting() { return troupe::task<lasts>(600'000).get(); }

/// A task that runs, and one that waits for it, until somebody ends this process.
int holds_tasks(troupe::Cluster&) { return troupe::task<waits_for_lasting>().get(); }

/// Tasks, and an actor behind them, that need what one node alone has.
int special(troupe::Cluster&) {
  const auto there = troupe::with({.cpus = 0, .resources = {{"special", 1}}});
  std::vector<troupe::Ref<int>> tasks;
  for (int i = 0; i < 4; ++i) tasks.push_back(there.task<lasts>(1'000));
  auto actor = there.spawn<Holder>();
  auto pid = actor.call<&Holder::pid>();
  std::cout << "submitted" << std::endl;
  // The actor may come between the tasks, which then wait until nobody has it.
  print("actor", pid.get());
  actor = {};
  for (auto& task : tasks) print("task", task.get());
  return 0;
}

/// Leaves a copy of itself behind, and waits to be killed.
int forks(troupe::Cluster&) {
  const int copy = fork();
  if (copy == 0) {
    sleep(600);
    _exit(0);
  }
  print("copy", copy);
  sleep(600);
  return 0;
}

int task(troupe::Cluster&) {
  print("task", troupe::task<process_id>().get());
  return 0;
}

/// A thread that runs at troupe::init: worker processes are executed, not forked. Once it has begun
/// it allocates nothing, as a sanitizer's allocator that it held would stay locked in a fork.
void sleep_until_stopped(const std::stop_token& stop, std::latch& begun) {
  std::atomic<bool> stopped{false};
  const std::stop_callback wake(stop, [&stopped] {
    stopped = true;
    stopped.notify_all();
  });
  begun.count_down();
  stopped.wait(false);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  std::latch begun(1);
  std::jthread sleeper;
  if (std::getenv("DRIVER_THREAD")) {
    sleeper = std::jthread(sleep_until_stopped, std::ref(begun));
    begun.wait();
  }
  if (what == "leaves" && std::getenv("TROUPE_BOOT")) return 0;
  try {
    auto cluster = troupe::init(argc, argv);
    if (what == "use_all") return use_all(cluster);
    if (what == "hold") return hold({.cpus = 1});
    if (what == "hold_first") return hold({.labels = {{"troupe.node", "1"}}});
    if (what == "holds_itself") return holds_itself(cluster);
    if (what == "gang") return gang(cluster);
    if (what == "hold_gang") return hold_gang(cluster);
    if (what == "by_node") return by_node(cluster);
    if (what == "many") return many(cluster);
    if (what == "special") return special(cluster);
    if (what == "forks") return forks(cluster);
    if (what == "task") return task(cluster);
    if (what == "stored") return stored(cluster);
    if (what == "holds_tasks") return holds_tasks(cluster);
    if (what == "holds_values") return holds_values(cluster);
    std::cerr << "no such thing to do: " << what << '\n';
    return 2;
  } catch (const troupe::Refused& error) {
    std::cerr << "driver: Refused: " << error.what() << '\n';
    return 1;
  } catch (const troupe::Disconnected& error) {
    std::cerr << "driver: Disconnected: " << error.what() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << '\n';
    return 1;
  }
}
