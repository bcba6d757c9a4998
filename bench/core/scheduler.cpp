// The scheduler's State alone, in virtual time: a large cluster whose nodes fail, and more tasks than it can hold.
#include <functional>
#include <queue>
#include <random>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <troupe/scheduler/state.hpp>

#include "cases.hpp"
#include "processes.hpp"

namespace troupe::bench {
namespace {

using namespace troupe::scheduler;
using namespace std::chrono_literals;

struct Size {
  NodeId nodes = 10'000;
  RequestId tasks = 1'000'000;
  std::uint32_t jobs = 4;
  std::uint64_t check_every = 500'000;  ///< events between two looks at the invariants
};

/// Events against the state machine, the next in virtual time first. Nodes of 4 CPUs; tasks of half a CPU, one and two, each
/// under a lease of its own and for 0.1 to 2 s, all of them asked for at the beginning. One node in a hundred fails at some
/// time and is back 5 s later; the tasks that it ran are asked for again.
class Simulation {
 public:
  Simulation(const Size& size, unsigned seed) : size_(size), seed_(seed), random_(seed) {}

  void run() {
    begin();
    while (done_ < size_.tasks) {
      if (agenda_.empty())
        throw std::runtime_error(fmt::format("seed {}: {} tasks are forgotten", seed_, size_.tasks - done_));
      const auto due = agenda_.top();
      agenda_.pop();
      now_ = due.time;
      happen(due.event);
    }
    check();
  }

  double decisions_per_second() const { return static_cast<double>(grants_) / seconds_; }
  std::string summary() const {
    return fmt::format(
        "leases granted a second, {} of them, {} events in {:.1f} s, {:.0f} s of virtual time; seed {}: {} nodes "
        "failed, "
        "{} tasks ran again; invariants held {} times; {:.0f} B a pending task",
        grants_, events_, seconds_, std::chrono::duration<double>(now_).count(), seed_, failures_, again_, checks_,
        pending_bytes_);
  }

 private:
  struct Due {
    TimePoint time{};
    std::uint64_t order = 0;
    Event event;
    bool operator>(const Due& other) const { return std::tie(time, order) > std::tie(other.time, other.order); }
  };

  std::uint32_t pick(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>{0, below - 1}(random_);
  }
  void after(Duration time, Event event) { agenda_.push({now_ + time, ++last_order_, std::move(event)}); }

  void begin() {
    for (NodeId node = 1; node <= size_.nodes; ++node) join(node, 1);
    for (JobId job = 1; job <= size_.jobs; ++job) {
      drivers_.push_back(state_.new_process_id());
      apply(JobStarted{job, drivers_.back()});
    }
    const auto before = rss_bytes({::getpid()});
    for (RequestId task = 1; task <= size_.tasks; ++task) ask(drivers_[pick(size_.jobs)]);
    pending_bytes_ = (rss_bytes({::getpid()}) - before) / static_cast<double>(size_.tasks);
    for (NodeId i = 0; i < size_.nodes / 100; ++i) {
      after(std::chrono::milliseconds(pick(20'000)), NodeLost{1 + i * 100 + pick(100), 1, "it failed"});
    }
    after(200ms, Tick{});
  }
  void join(NodeId node, Incarnation incarnation) {
    apply(NodeJoined{node, incarnation, fmt::format("n{}", node), {{"cpu", 4}}, 0, {}});
  }
  void ask(ProcessId driver) {
    static const Need needs[] = {
        {{{"cpu", 1}}, {}, false}, {{{"cpu", 1}}, {}, false}, {{{"cpu", 2}}, {}, false}, {{{"cpu", 0.5}}, {}, false}};
    const auto job = static_cast<JobId>(1 + (driver - drivers_.front()));
    apply(LeaseAsked{++last_request_, job, driver, needs[pick(4)]});
  }

  void happen(const Event& event) {
    if (const auto* returned = std::get_if<LeaseReturned>(&event)) {
      if (holders_.erase(returned->lease) == 0) return;  // lost meanwhile
      ++done_;
    }
    if (std::holds_alternative<Tick>(event)) after(200ms, Tick{});
    if (const auto* lost = std::get_if<NodeLost>(&event)) {
      ++failures_;
      after(5s, NodeJoined{lost->node, 2, fmt::format("n{}", lost->node), {{"cpu", 4}}, 0, {}});
    }
    apply(event);
    for (const auto driver : std::exchange(to_ask_again_, {})) ask(driver);
  }
  void apply(const Event& event) {
    const auto start = Clock::now();
    const auto effects = state_.apply(event, now_);
    seconds_ += seconds_since(start);
    for (const auto& effect : effects) std::visit([this](const auto& e) { note(e); }, effect);
    if (++events_ % size_.check_every == 0) check();
  }
  void check() {
    ++checks_;
    if (auto wrong = state_.broken_invariant()) {
      throw std::runtime_error(fmt::format("seed {}, event {}: {}", seed_, events_, *wrong));
    }
  }

  void note(const StartProcess& e) { after(5ms, ProcessReady{e.process}); }
  void note(const StopProcess& e) { after(1ms, ProcessExited{e.process, "stopped"}); }
  void note(const LeaseGranted& e) {
    ++grants_;
    holders_.emplace(e.lease, e.requester);
    after(100ms + std::chrono::microseconds(pick(1'900'000)), LeaseReturned{e.lease});
  }
  void note(const LeaseLost& e) {
    if (holders_.erase(e.lease) == 0) return;
    ++again_;
    to_ask_again_.push_back(e.requester);
  }
  void note(const Refused& e) { throw std::runtime_error(fmt::format("seed {}: refused: {}", seed_, e.reason)); }
  template <class Other>
  void note(const Other&) {}

  const Size size_;
  const unsigned seed_;
  std::mt19937 random_;
  State state_;
  TimePoint now_{};
  std::uint64_t last_order_ = 0;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> agenda_;
  std::vector<ProcessId> drivers_;
  RequestId last_request_ = 0;
  std::unordered_map<LeaseId, ProcessId> holders_;
  std::vector<ProcessId> to_ask_again_;

  std::uint64_t done_ = 0, grants_ = 0, events_ = 0, failures_ = 0, again_ = 0, checks_ = 0;
  double seconds_ = 0;  // within State::apply
  double pending_bytes_ = 0;
};

}  // namespace

void scheduler(const Report& report) {
  constexpr auto kName = "scheduler_decisions_per_s";
  if (!report.wants(kName)) return;
  Simulation simulation(report.smoke() ? Size{.nodes = 200, .tasks = 5'000, .jobs = 5, .check_every = 2'000} : Size{},
                        report.options().seed);
  simulation.run();
  report.print(kName, simulation.decisions_per_second(), "1/s", simulation.summary());
}

}  // namespace troupe::bench
