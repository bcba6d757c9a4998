// Actors: how fast twenty start, how many are alive at once, and what one takes.
#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/troupe.hpp>

#include "cases.hpp"
#include "counter.hpp"
#include "os/open_files.hpp"
#include "processes.hpp"
#include "start_twenty.hpp"

namespace troupe::bench {
namespace {

constexpr std::chrono::seconds kLimit{120};
constexpr std::size_t kSampled = 200;  // processes whose memory is looked at

/// The floor of start_twenty: twenty forks of this program that answer one byte each, with no
/// runtime about them.
double fork_twenty() {
  struct Forked {
    pid_t pid = -1;
    int link = -1;
  };
  std::array<Forked, 20> all;
  const auto start = Clock::now();
  for (auto& one : all) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("no socket pair");
    one.pid = ::fork();
    if (one.pid == 0) {
      ::close(ends[0]);
      for (char byte; ::read(ends[1], &byte, 1) == 1 && ::write(ends[1], &byte, 1) == 1;) {
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    one.link = ends[0];
  }
  for (const auto& one : all) (void)!::write(one.link, "?", 1);
  char byte = 0;
  const bool answered =
      std::ranges::all_of(all, [&](const Forked& one) { return ::read(one.link, &byte, 1) == 1; });
  const auto seconds = seconds_since(start);
  for (const auto& one : all) ::close(one.link);
  for (const auto& one : all) ::waitpid(one.pid, nullptr, 0);
  if (!answered) throw std::runtime_error("a forked process did not answer");
  return seconds;
}

struct Alive {
  std::size_t count = 0;
  double seconds = 0;
  std::vector<pid_t> pids;
  std::string ended;  ///< what kept more from starting; empty: nothing
};

/// Starts actors and calls each once, in portions, until `wanted` have answered or the time is
/// over.
Alive start_many(std::size_t wanted, std::vector<Actor<Counter>>& actors) {
  constexpr std::size_t kPortion = 500;
  Alive alive;
  const auto start = Clock::now();
  try {
    while (alive.count < wanted && seconds_since(start) < static_cast<double>(kLimit.count())) {
      std::vector<Ref<int>> pids;
      const auto portion = std::min(kPortion, wanted - alive.count);
      for (std::size_t i = 0; i < portion; ++i) {
        actors.push_back(spawn<Counter>());
        pids.push_back(actors.back().call<&Counter::pid>());
      }
      for (const auto& pid : pids) {
        alive.pids.push_back(pid.get(std::chrono::seconds(30)));
        ++alive.count;
      }
    }
    if (alive.count < wanted) alive.ended = fmt::format("{} s were over", kLimit.count());
  } catch (const Error& error) {
    alive.ended = error.what();
  }
  alive.seconds = seconds_since(start);
  return alive;
}

/// The median over some deaths. `told` -> the seconds from the kill to the failures that it causes.
void print_death(const Report& report, const std::string& name,
                 const std::function<double()>& told) {
  if (!report.wants(name)) return;
  std::vector<double> seconds(static_cast<std::size_t>(sized(report, 21, 1)));
  std::ranges::generate(seconds, told);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  report.print(name, *middle * 1000, "ms", fmt::format("median of {}", seconds.size()));
}

/// Whoever waits for a value that can no longer come is told.
void wait_for_failure(const Ref<int>& ref) {
  try {
    ref.get(kLimit);
  } catch (const Error&) {
    return;
  }
  throw std::runtime_error("a call of a process that was killed did not fail");
}

double kill_actor() {
  const auto actor = spawn<Counter>();
  const auto pid = actor.call<&Counter::pid>().get(kLimit);
  const auto call = actor.call<&Counter::waits>();
  const auto start = Clock::now();
  ::kill(pid, SIGKILL);
  wait_for_failure(call);
  return seconds_since(start);
}

/// Of a gang of two, of which one rank waits for a key that nobody sets.
double kill_rank() {
  const auto ranks = gang<Counter>({.size = 2, .each = {.cpus = 0.5}});
  const auto pid = ranks.rank(0).call<&Counter::pid>().get(kLimit);
  const auto call = ranks.rank(1).call<&Counter::waits_for_rank>();
  const auto start = Clock::now();
  ::kill(pid, SIGKILL);
  wait_for_failure(call);
  return seconds_since(start);
}

}  // namespace

void actors(const Report& report) {
  print_death(report, "actor_death_told_ms", kill_actor);
  print_death(report, "rank_death_told_ms", kill_rank);
  report.rate_of("actors_started_20", "1/s", 20, start_twenty);
  report.rate_of("forks_answered_20", "1/s", 20, fork_twenty);
}

void many_actors(const Report& report) {
  if (!report.wants_any({"actors_alive", "actor_memory_KiB"})) return;
  os::raise_open_files_limit();  // this process has a connection to each
  const auto cluster = init({.cpus = 2});
  std::vector<Actor<Counter>> actors;
  const auto alive = start_many(static_cast<std::size_t>(sized(report, 10'000, 50)), actors);
  report.print("actors_alive", static_cast<double>(alive.count), "",
               alive.ended.empty()
                   ? fmt::format("started and called in {:.2f} s, {:.0f}/s", alive.seconds,
                                 static_cast<double>(alive.count) / alive.seconds)
                   : alive.ended);
  std::vector<pid_t> sample;
  const auto step = std::max<std::size_t>(1, alive.pids.size() / kSampled);
  for (std::size_t i = 0; i < alive.pids.size(); i += step) sample.push_back(alive.pids[i]);
  report.print(
      "actor_memory_KiB",
      pss_bytes(sample) / 1024 / static_cast<double>(std::max<std::size_t>(1, sample.size())),
      "KiB", fmt::format("proportional set size, mean of {} of them", sample.size()));
}

}  // namespace troupe::bench
