#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include <troupe/errors.hpp>

#include "calls/execution_record.hpp"
#include "ids/ids.hpp"

namespace troupe::head {

using runtime::ActorId;
using runtime::ProcessId;

/// How processes ended, and how actors did, for who asks later. Remembers the last kMost of each; a
/// value.
class ExitRecords {
 public:
  static constexpr std::size_t kMost = 100'000;

  /// How a process ended, and how far it had come with the calls of each caller.
  struct End {
    Failure how;
    runtime::ExecutionRecord::Report calls;

    /// What is told to one of those that called it.
    runtime::Death death_for(ProcessId caller) const {
      runtime::Death death(how);
      for (const auto& entry : calls.callers) {
        if (entry.process == caller) death.calls = entry.calls;
      }
      if (!death.calls && calls.complete) death.calls = runtime::CallsSeen{};
      return death;
    }
  };

  void process_ended(ProcessId process, End end) { processes_.put(process, std::move(end)); }
  void actor_ended(ActorId actor, ProcessId process, Failure how) {
    actors_.put(actor, {.process = process, .how = std::move(how)});
  }
  /// nullptr: it has not ended, or so long ago that nobody remembers.
  const End* process(ProcessId process) const { return processes_.find(process); }
  const Failure* actor(ActorId actor) const {
    const auto* ended = actors_.find(actor);
    return ended ? &ended->how : nullptr;
  }
  /// Where an actor that has ended was; none: as above.
  ProcessId process_of(ActorId actor) const {
    const auto* ended = actors_.find(actor);
    return ended ? ended->process : ProcessId();
  }

  /// The head has told the node to end it: its signal 9 is then not news, but this is.
  void will_stop(ProcessId process, std::string why) { stopping_[process] = std::move(why); }
  std::size_t processes() const { return processes_.by_id.size(); }
  std::size_t actors() const { return actors_.by_id.size(); }
  std::size_t stopping() const { return stopping_.size(); }
  /// What was said to will_stop, once; else empty.
  std::string stopped_because(ProcessId process) {
    auto found = stopping_.extract(process);
    return found.empty() ? std::string() : std::move(found.mapped());
  }

 private:
  template <class Id, class How>
  struct Memory {
    std::unordered_map<Id, How> by_id;
    std::deque<Id> order;

    void put(Id id, How how) {
      if (by_id.emplace(id, std::move(how)).second) order.push_back(id);
      if (order.size() <= kMost) return;
      by_id.erase(order.front());
      order.pop_front();
    }
    const How* find(Id id) const {
      auto found = by_id.find(id);
      return found == by_id.end() ? nullptr : &found->second;
    }
  };
  Memory<ProcessId, End> processes_;
  struct ActorEnd {
    ProcessId process{};
    Failure how;
  };
  Memory<ActorId, ActorEnd> actors_;
  std::unordered_map<ProcessId, std::string> stopping_;
};

}  // namespace troupe::head
