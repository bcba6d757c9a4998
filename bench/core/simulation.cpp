#include "simulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include "harness.hpp"
#include "processes.hpp"

namespace troupe::bench {
namespace {

using namespace troupe::scheduler;
using namespace std::chrono_literals;

scheduler::Options with_room_for(std::uint64_t requests) {
  scheduler::Options options;
  options.pending_requests = std::max<std::size_t>(options.pending_requests, requests);
  return options;
}

NodeId node_of(std::uint64_t number) { return NodeId{static_cast<std::uint32_t>(number)}; }
std::uint32_t detail_of(Incarnation incarnation) {
  return static_cast<std::uint32_t>(incarnation.value());
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

Simulation::Simulation(const Load& load, unsigned seed)
    : load_(load), seed_(seed), random_(seed), state_(with_room_for(load.at_once)) {}

void Simulation::run() {
  simulate();
  state_ = State(with_room_for(load_.at_once));
  replay();
}

std::string Simulation::summary() const {
  return fmt::format(
      "leases granted a second of CPU time, {} of them, {} events and {} effects in {:.2f} s, "
      "{:.0f} s of virtual time; seed {}: {} nodes failed, {} tasks ran again; invariants held {} "
      "times, in {:.1f} s that do not count; {:.0f} B of memory a pending task",
      grants_, happened_.size(), effects_, seconds_, std::chrono::duration<double>(now_).count(),
      seed_, failures_, again_, checks_, seconds_of_checks_, pending_bytes_);
}

std::uint32_t Simulation::pick(std::uint32_t below) {
  return std::uniform_int_distribution<std::uint32_t>{0, below - 1}(random_);
}

void Simulation::after(Duration time, What what, std::uint64_t subject, std::uint32_t detail,
                       std::uint64_t by) {
  agenda_.push({{now_ + time, subject, by, detail, what}, ++last_order_});
}

void Simulation::simulate() {
  happened_.reserve(8 * load_.tasks + 4 * std::uint64_t{load_.nodes});
  begin();
  while (done_ < load_.tasks) {
    if (agenda_.empty()) {
      throw std::runtime_error(
          fmt::format("seed {}: {} tasks are forgotten", seed_, load_.tasks - done_));
    }
    const auto due = agenda_.top().due;
    agenda_.pop();
    now_ = due.time;
    happen(due);
  }
  check();
}

void Simulation::begin() {
  for (std::uint32_t node = 1; node <= load_.nodes; ++node) apply(What::Joined, node, 1);
  for (std::uint32_t job = 1; job <= load_.jobs; ++job) apply(What::Started, job);
  const auto before = rss_bytes({::getpid()});
  while (asked_ < load_.at_once) ask(ProcessId{1 + pick(load_.jobs)});
  pending_bytes_ = (rss_bytes({::getpid()}) - before) / static_cast<double>(load_.at_once);
  for (std::uint32_t i = 0; load_.failures && i < load_.nodes / 100; ++i) {
    after(std::chrono::milliseconds(pick(20'000)), What::NodeFails, 1 + i * 100 + pick(100));
  }
  after(200ms, What::Tick, 0);
}

void Simulation::ask(ProcessId driver) {
  ++asked_;
  apply(What::Asked, driver.value(), pick(4));
}

void Simulation::ask_again() {
  for (const auto driver : std::exchange(to_ask_again_, {})) {
    --asked_;
    ask(driver);
  }
}

void Simulation::happen(const Due& due) {
  if (due.what == What::Returned) {
    give_back(LeaseId{due.subject});
  } else {
    apply(due.what, due.subject, due.detail, due.by);
  }
  if (due.what == What::Tick) after(200ms, What::Tick, 0);
  if (due.what == What::NodeFails) {
    ++failures_;
    after(5s, What::Joined, due.subject, 2);
  }
  ask_again();
}

void Simulation::give_back(LeaseId lease) {
  const auto holder = holders_.extract(lease);
  if (holder.empty()) return;  // lost meanwhile
  if (done_++ == 0) {
    first_end_ = happened_.size();
    grants_to_first_end_ = grants_;
  }
  apply(What::Returned, lease.value(), 0, holder.mapped().value());
  if (asked_ < load_.tasks) ask(ProcessId{1 + pick(load_.jobs)});
}

void Simulation::apply(What what, std::uint64_t subject, std::uint32_t detail, std::uint64_t by) {
  happened_.push_back({now_, subject, by, detail, what});
  std::vector<Effect> effects;
  state_.apply(event_of(happened_.back(), state_, last_request_), now_, effects);
  for (const auto& effect : effects) std::visit([this](const auto& e) { note(e); }, effect);
  effects_ += effects.size();
  if (happened_.size() % load_.check_every == 0) check();
}

void Simulation::check() {
  const auto start = Clock::now();
  ++checks_;
  if (auto wrong = state_.broken_invariant()) {
    throw std::runtime_error(fmt::format("seed {}, event {}: {}", seed_, happened_.size(), *wrong));
  }
  seconds_of_checks_ += seconds_since(start);
}

void Simulation::replay() {
  RequestId request;
  std::uint64_t said = 0;
  std::vector<Effect> effects;
  const auto start = cpu_seconds();
  for (std::size_t i = 0; i < happened_.size(); ++i) {
    if (i == first_end_) seconds_to_first_end_ = cpu_seconds() - start;
    state_.apply(event_of(happened_[i], state_, request), happened_[i].time, effects);
    said += effects.size();
    effects.clear();
  }
  seconds_ = cpu_seconds() - start;
  if (said != effects_)
    throw std::runtime_error(fmt::format("seed {}: a replay says something else", seed_));
}

/// A job's driver has the job's number: drivers are the first processes.
Event Simulation::event_of(const Due& due, State& state, RequestId& request) const {
  static const Need needs[] = {{{{"cpu", 1}}, {}, false},
                               {{{"cpu", 1}}, {}, false},
                               {{{"cpu", 2}}, {}, false},
                               {{{"cpu", 0.5}}, {}, false}};
  switch (due.what) {
    case What::Joined:
      return NodeJoined{node_of(due.subject),
                        Incarnation{due.detail},
                        fmt::format("n{}", due.subject),
                        {{"cpu", 4}},
                        0,
                        {}};
    case What::Started:
      return JobStarted{JobId{due.subject}, state.new_process_id()};
    case What::Asked:
      return LeaseAsked{++request, JobId{due.subject}, ProcessId{due.subject}, needs[due.detail]};
    case What::Ready:
      return ProcessReady{ProcessId{due.subject}, node_of(due.by), Incarnation{due.detail}};
    case What::Exited:
      return ProcessExited{ProcessId{due.subject}, node_of(due.by), Incarnation{due.detail},
                           "stopped"};
    case What::Returned:
      return LeaseReturned{LeaseId{due.subject}, ProcessId{due.by}};
    case What::NodeFails:
      return NodeLost{node_of(due.subject), Incarnation{1}, "it failed"};
    case What::Tick:
      return Tick{};
  }
  return Tick{};
}

void Simulation::note(const StartProcess& e) {
  after(5ms, What::Ready, e.process.value(), detail_of(e.incarnation), e.node.value());
}

void Simulation::note(const StopProcess& e) {
  after(1ms, What::Exited, e.process.value(), detail_of(e.incarnation), e.node.value());
}

void Simulation::note(const LeaseGranted& e) {
  ++grants_;
  holders_.emplace(e.lease, e.requester);
  after(100ms + std::chrono::microseconds(pick(1'900'000)), What::Returned, e.lease.value());
}

void Simulation::note(const LeaseLost& e) {
  if (holders_.erase(e.lease) == 0) return;
  ++again_;
  to_ask_again_.push_back(e.requester);
}

void Simulation::note(const scheduler::Refused& e) {
  throw std::runtime_error(fmt::format("seed {}: refused: {}", seed_, e.reason));
}

}  // namespace troupe::bench
