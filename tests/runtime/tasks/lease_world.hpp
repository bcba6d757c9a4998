#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tasks/lease_book.hpp"

/// A head, worker processes and their channels, as far as a LeaseBook meets them: performs its
/// effects, in any order that the real ones could take.
namespace troupe::tasks::test {

using namespace std::chrono_literals;

struct WorldTask : BookedTask {
  int number = 0;
  int retries = 0;
  bool arguments_failed = false;
  bool cancelled = false;
  int begun = 0;
  int ended = 0;
  bool ok = false;
  Failure failure;
};
using WorldTaskPtr = std::shared_ptr<WorldTask>;

struct WorldLease : Lease {};

struct TaskSpec {
  int shape = 0;
  int retries = 3;
  bool arguments_here = true;
  bool fits_channel = true;
};

class LeaseWorld {
 public:
  explicit LeaseWorld(unsigned seed = 1) : random_(seed) {}

  LeaseBook& book() { return book_; }
  TimePoint now() const { return now_; }
  const std::vector<WorldTaskPtr>& tasks() const { return tasks_; }
  const std::set<AskId>& asks() const { return asks_; }
  int warnings() const { return warnings_; }
  std::size_t leases_kept() const { return held_.size(); }

  // ---- the user
  WorldTaskPtr submit(const TaskSpec& spec) {
    auto task = std::make_shared<WorldTask>();
    task->label = "work";
    task->number = static_cast<int>(tasks_.size());
    task->tries_left = task->retries = spec.retries;
    task->fits_channel = spec.fits_channel;
    tasks_.push_back(task);
    detail::RequestOptions need;
    need.resources = {{"cpu", 1.0 + spec.shape}};
    event([&](Effects& effects) { book_.submit(task, need, spec.arguments_here, effects); });
    return task;
  }
  void arguments_here(const WorldTaskPtr& task) {
    event([&](Effects& effects) { book_.arguments_here(task, effects); });
  }
  void cancel(const WorldTaskPtr& task) {
    event([&](Effects& effects) { book_.cancel(task, effects); });
  }

  // ---- time
  void turn() {
    while (book_.wants_turn()) event([&](Effects& effects) { book_.turn(now_, effects); });
  }
  void pass(std::chrono::nanoseconds time) {
    for (const auto until = now_ + time; now_ < until;) {
      now_ += LeaseBook::kTick;
      if (book_.wants_ticks()) event([&](Effects& effects) { book_.tick(now_, effects); });
      turn();
    }
  }

  // ---- the head
  void refuse_all(Refusal refusal) {
    for (const auto ask : std::set(asks_)) refuse(ask, refusal);
  }
  void grant_one() { grant(*asks_.begin()); }

  // ---- the worker processes
  /// The next task of the first process that has one.
  void begin() {
    for (auto& [id, process] : processes_) {
      if (begin_next(process)) return;
    }
  }
  /// Finishes it too, and the reply stays in the process.
  void begin_and_finish_silently() {
    for (auto& [id, process] : processes_) {
      if (!begin_next(process)) continue;
      process.unsent.push_back(std::exchange(process.running, nullptr));
      return;
    }
  }
  /// From here on nobody can say of a process that has ended what it had begun.
  void lose_records() { has_records_ = false; }
  void kill_all() {
    for (auto& [id, process] : processes_) kill(process);
    deliver_ends();
  }
  /// One lease with a channel, and tasks that were seen to take so long.
  void learn_run_time(std::chrono::nanoseconds time) {
    submit({});
    turn();
    grant_one();
    turn();
    auto& process = processes_.begin()->second;
    open_channel(process);
    begin_next(process);
    answer(process, time);
  }

  /// Everybody behaves from here on, until all is over and given back.
  void settle() {
    for (int i = 0; i < 100'000 && !is_settled(); ++i) {
      for (const auto& task : std::vector(waiting_)) arguments_arrive(task, true);
      deliver_ends();
      turn();
      for (const auto ask : std::set(asks_)) grant(ask);
      turn();
      for (auto& [id, process] : processes_) work_off(process);
      pass(LeaseBook::kTick);
    }
    REQUIRE(is_settled());
  }

  void random_event() {
    now_ += std::chrono::microseconds(pick(3000));
    switch (pick(16)) {
      case 0:
      case 1:
      case 2: {
        const bool here = !chance(5);
        auto task = submit({.shape = pick(3),
                            .retries = pick(3),
                            .arguments_here = here,
                            .fits_channel = !chance(4)});
        if (!here) waiting_.push_back(task);
        return;
      }
      case 3:
        if (!waiting_.empty())
          arguments_arrive(
              waiting_[static_cast<std::size_t>(pick(static_cast<int>(waiting_.size())))],
              !chance(4));
        return;
      case 4:
        if (!tasks_.empty()) {
          const auto& task =
              tasks_[static_cast<std::size_t>(pick(static_cast<int>(tasks_.size())))];
          if (task->ended == 0) task->cancelled = true;
          cancel(task);
        }
        return;
      case 5:
      case 6:
        return turn();
      case 7:
        return pass(LeaseBook::kTick);
      case 8:
      case 9:
        if (!asks_.empty()) grant(*asks_.begin());
        return;
      case 10:
        if (!asks_.empty())
          refuse(*asks_.begin(), chance(6)   ? Refusal::Never
                                 : chance(2) ? Refusal::ProcessFailed
                                             : Refusal::ProgramFailed);
        return;
      default:
        if (auto* process = any_process()) process_event(*process);
    }
  }

 private:
  struct Process {
    ProcessId id;
    LeaseId lease;
    bool channel = false;
    std::deque<WorldTaskPtr> inbox = {};
    WorldTaskPtr running = nullptr;
    std::vector<WorldTaskPtr> unsent = {};  // finished, and the reply lies in its outbox
    // Asked back through a socket: the word of it is on its way.
    std::vector<WorldTaskPtr> given_up = {};
    bool dead = false;
  };
  struct End {
    WorldTaskPtr task;
    Progress progress;
  };

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool chance(int one_in) { return pick(one_in) == 0; }

  void event(const auto& what) {
    Effects effects;
    what(effects);
    for (std::size_t i = 0; i < effects.size(); ++i) {
      auto effect = std::move(effects[i]);
      std::visit([&](auto& done) { perform(done, effects); }, effect);
    }
  }

  void perform(Send& send, Effects& effects) {
    auto task = std::static_pointer_cast<WorldTask>(send.task->shared_from_this());
    REQUIRE(task->ended == 0);
    REQUIRE(held_.contains(task->lease->id));
    auto& process = processes_.at(task->lease->process);
    REQUIRE((!task->by_channel || process.channel));
    if (process.dead) return book_.lost(*task, Progress::NotBegun, {}, effects);
    process.inbox.push_back(task);
  }
  void perform(TakeBack& back, Effects& effects) {
    auto task = std::static_pointer_cast<WorldTask>(back.task);
    auto& process = processes_.at(task->lease->process);
    const auto place = std::ranges::find(process.inbox, task);
    const bool waits = place != process.inbox.end() && !process.dead;
    if (waits) process.inbox.erase(place);
    if (waits && !task->by_channel) {
      process.given_up.push_back(task);
    } else if (waits) {
      book_.taken_back(*task, effects);
    } else if (task->by_channel) {
      book_.runs_on(*task);
    }
  }
  void perform(Fail& end, Effects&) {
    auto& task = static_cast<WorldTask&>(*end.task);
    ++task.ended;
    task.failure = end.how;
  }
  void perform(Ask& ask, Effects&) {
    REQUIRE(asks_.insert(ask.ask).second);
    REQUIRE(!ask.need->resources.empty());
  }
  void perform(Withdraw& withdraw, Effects&) { REQUIRE(asks_.erase(withdraw.ask) == 1); }
  void perform(GiveBack& back, Effects&) {
    REQUIRE(held_.erase(back.lease) == 1);
    const auto found = std::ranges::find_if(
        processes_, [&](const auto& entry) { return entry.second.lease == back.lease; });
    REQUIRE(found != processes_.end());
    REQUIRE(found->second.inbox.empty());
    processes_.erase(found);
  }
  void perform(Warn&, Effects&) { ++warnings_; }

  void refuse(AskId ask, Refusal refusal) {
    asks_.erase(ask);
    const Failure why{
        .kind = refusal == Refusal::Never ? Failure::Kind::Impossible : Failure::Kind::ProcessDied,
        .message = refusal == Refusal::Never ? "never" : "it did not start"};
    event([&](Effects& effects) { book_.refused(ask, refusal, why, now_, effects); });
  }
  void grant(AskId ask) {
    asks_.erase(ask);
    auto lease = std::make_unique<WorldLease>();
    const auto id = ++last_;
    const ProcessId process{id.value()};
    lease->id = id;
    lease->process = process;
    processes_[process] = {.id = process, .lease = id};
    held_.insert(id);
    REQUIRE(book_.granted(ask, std::move(lease)));
  }

  Process* any_process() {
    if (processes_.empty()) return nullptr;
    auto place = processes_.begin();
    std::advance(place, pick(static_cast<int>(processes_.size())));
    return &place->second;
  }
  void process_event(Process& process) {
    switch (pick(9)) {
      case 0:
        return open_channel(process);
      case 1:
        if (chance(3)) kill(process);
        return;
      case 2:
        return event([&](Effects& effects) { book_.recalled(process.lease, effects); });
      case 3:
        return deliver_ends();
      case 4:
        return send_given_up(process);
      case 5:
      case 6:
        begin_next(process);
        return;
      case 7:
        if (process.running) process.unsent.push_back(std::exchange(process.running, nullptr));
        return;
      default:
        return answer(process, std::chrono::microseconds(1 + pick(4000)));
    }
  }
  void open_channel(Process& process) {
    if (process.dead || std::exchange(process.channel, true)) return;
    book_.channel_opened(process.id);
  }
  bool begin_next(Process& process) {
    if (process.dead || process.running || process.inbox.empty()) return false;
    process.running = std::move(process.inbox.front());
    process.inbox.pop_front();
    ++process.running->begun;
    return true;
  }
  /// The replies that wait, then that of the running one.
  void answer(Process& process, std::chrono::nanoseconds time) {
    if (process.dead) return;
    auto done = std::exchange(process.unsent, {});
    if (process.running) done.push_back(std::exchange(process.running, nullptr));
    for (const auto& task : done) {
      bool tells = false;
      event([&](Effects& effects) { tells = book_.answered(*task, time, effects); });
      REQUIRE(tells);
      ++task->ended;
      task->ok = true;
    }
  }
  void send_given_up(Process& process) {
    if (process.dead) return;
    for (const auto& task : std::exchange(process.given_up, {})) {
      event([&](Effects& effects) { book_.taken_back(*task, effects); });
    }
  }
  void work_off(Process& process) {
    send_given_up(process);
    while (begin_next(process)) answer(process, 20us);
    answer(process, 20us);
  }
  void kill(Process& process) {
    if (std::exchange(process.dead, true)) return;
    held_.erase(process.lease);
    REQUIRE(book_.lease_lost(process.lease) == process.id);
    for (const auto& task : process.unsent) ends_.push_back({task, Progress::Finished});
    if (process.running)
      ends_.push_back({process.running, has_records_ ? Progress::UnderWay : Progress::Unknown});
    for (const auto& task : process.given_up) ends_.push_back({task, Progress::NotBegun});
    for (const auto& task : process.inbox) ends_.push_back({task, Progress::NotBegun});
  }
  void deliver_ends() {
    std::ranges::shuffle(ends_, random_);
    for (const auto& end : std::exchange(ends_, {})) {
      const Failure how{.kind = Failure::Kind::ProcessDied, .message = "its process was killed"};
      event([&](Effects& effects) { book_.lost(*end.task, end.progress, how, effects); });
    }
  }
  void arguments_arrive(const WorldTaskPtr& given, bool well) {
    const auto task = given;
    std::erase(waiting_, task);
    if (well) return arguments_here(task);
    if (task->ended == 0) task->arguments_failed = true;
    const Failure how{.kind = Failure::Kind::Task, .message = "its argument failed"};
    event([&](Effects& effects) { book_.arguments_failed(task, how, effects); });
  }
  bool is_settled() const {
    return held_.empty() && asks_.empty() && ends_.empty() &&
           std::ranges::all_of(tasks_, [](const auto& task) {
             return task->ended != 0 || task->stage == BookedTask::Stage::AwaitsArguments;
           });
  }

  std::mt19937 random_;
  LeaseBook book_;
  bool has_records_ = true;
  TimePoint now_{};
  std::vector<WorldTaskPtr> tasks_;
  std::vector<WorldTaskPtr> waiting_;  // for their arguments
  std::set<AskId> asks_;
  std::set<LeaseId> held_;  // granted, and neither given back nor lost
  std::map<ProcessId, Process> processes_;
  std::vector<End> ends_;
  LeaseId last_;
  int warnings_ = 0;
};

}  // namespace troupe::tasks::test
