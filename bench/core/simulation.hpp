#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <troupe/scheduler/state.hpp>

namespace troupe::bench {

/// What a Simulation is made of.
struct Load {
  std::uint32_t nodes = 10'000;     ///< of 4 CPUs each
  std::uint64_t tasks = 1'000'000;  ///< that are run, each under a lease of its own
  /// Asked for at the beginning; the rest one by one as others end.
  std::uint64_t at_once = 1'000'000;
  std::uint32_t jobs = 20;  ///< with a driver each, whose tasks they are by chance
  /// One node in a hundred fails at some time and is back 5 s later.
  bool failures = true;
  std::uint64_t check_every = 500'000;  ///< events between two looks at the invariants
};

/// The scheduler's State alone, events against it in virtual time, the next one first. Tasks of
/// half a CPU, one and two run for 0.1 to 2 s; those that were on a node that failed are asked for
/// again.
///
/// Run twice. First as a simulation, in which what State says makes the next events, and the
/// invariants are checked. Then the same events at the same times against a new State, which says
/// the same again: this is what is timed, by the CPU time of its thread, without the simulation's
/// own work, the checks and what else the machine does.
class Simulation {
 public:
  Simulation(const Load& load, unsigned seed);

  /// Runs all tasks. Throws std::runtime_error where an invariant is broken, a request refused, a
  /// task forgotten, or a replay does not say the same.
  void run();

  double decisions_per_second() const { return static_cast<double>(grants_) / seconds_; }
  /// Since the first task ended: without those that found the cluster empty.
  double steady_ns_per_decision() const {
    return (seconds_ - seconds_to_first_end_) * 1e9 /
           static_cast<double>(grants_ - grants_to_first_end_);
  }
  std::string summary() const;

 private:
  enum class What : unsigned char {
    Joined,
    Started,
    Asked,
    Ready,
    Exited,
    Returned,
    NodeFails,
    Tick
  };
  /// An event in little: there are millions of them.
  struct Due {
    scheduler::TimePoint time{};
    std::uint64_t subject = 0;  ///< the node, job, driver, process or lease
    std::uint64_t by = 0;       ///< whose word it is: the node of a process, the holder of a lease
    std::uint32_t detail = 0;   ///< which need; which incarnation
    What what{};
  };
  struct Planned {
    Due due;
    std::uint64_t order = 0;
    bool operator>(const Planned& o) const {
      return std::tie(due.time, order) > std::tie(o.due.time, o.order);
    }
  };

  std::uint32_t pick(std::uint32_t below);
  void after(scheduler::Duration time, What what, std::uint64_t subject, std::uint32_t detail = 0,
             std::uint64_t by = 0);

  void simulate();
  void begin();
  void ask(scheduler::ProcessId driver);
  void ask_again();
  void happen(const Due& due);
  void give_back(scheduler::LeaseId lease);
  void apply(What what, std::uint64_t subject, std::uint32_t detail = 0, std::uint64_t by = 0);
  void check();

  void replay();
  /// `request` counts those that were made.
  scheduler::Event event_of(const Due& due, scheduler::State& state,
                            scheduler::RequestId& request) const;

  void note(const scheduler::StartProcess& effect);
  void note(const scheduler::StopProcess& effect);
  void note(const scheduler::LeaseGranted& effect);
  void note(const scheduler::LeaseLost& effect);
  void note(const scheduler::Refused& effect);
  template <class Other>
  void note(const Other&) {}

  const Load load_;
  const unsigned seed_;
  std::mt19937 random_;
  scheduler::State state_;
  scheduler::TimePoint now_{};
  std::uint64_t last_order_ = 0;
  std::priority_queue<Planned, std::vector<Planned>, std::greater<>> agenda_;
  std::vector<Due> happened_;
  scheduler::RequestId last_request_;
  std::unordered_map<scheduler::LeaseId, scheduler::ProcessId> holders_;
  std::vector<scheduler::ProcessId> to_ask_again_;

  std::uint64_t asked_ = 0, done_ = 0, grants_ = 0, effects_ = 0, failures_ = 0, again_ = 0,
                checks_ = 0;
  std::uint64_t grants_to_first_end_ = 0;
  std::size_t first_end_ = 0;  // in happened_
  double seconds_ = 0;         // of the replay
  double seconds_to_first_end_ = 0;
  double seconds_of_checks_ = 0;
  double pending_bytes_ = 0;
};

}  // namespace troupe::bench
