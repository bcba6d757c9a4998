#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include <troupe/errors.hpp>

#include "calls/execution_record.hpp"

namespace troupe::head {

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
    runtime::Death death_for(std::uint64_t caller) const {
      runtime::Death death(how);
      for (const auto& entry : calls.callers) {
        if (entry.process == caller) death.calls = entry.calls;
      }
      if (!death.calls && calls.complete) death.calls = runtime::CallsSeen{};
      return death;
    }
  };

  void process_ended(std::uint64_t process, End end) { processes_.put(process, std::move(end)); }
  void actor_ended(std::uint64_t actor, Failure how) { actors_.put(actor, std::move(how)); }
  /// nullptr: it has not ended, or so long ago that nobody remembers.
  const End* process(std::uint64_t process) const { return processes_.find(process); }
  const Failure* actor(std::uint64_t actor) const { return actors_.find(actor); }

  /// The head has told the node to end it: its signal 9 is then not news, but this is.
  void will_stop(std::uint64_t process, std::string why) { stopping_[process] = std::move(why); }
  std::size_t processes() const { return processes_.by_id.size(); }
  std::size_t actors() const { return actors_.by_id.size(); }
  std::size_t stopping() const { return stopping_.size(); }
  /// What was said to will_stop, once; else empty.
  std::string stopped_because(std::uint64_t process) {
    auto found = stopping_.extract(process);
    return found.empty() ? std::string() : std::move(found.mapped());
  }

 private:
  template <class How>
  struct Memory {
    std::unordered_map<std::uint64_t, How> by_id;
    std::deque<std::uint64_t> order;

    void put(std::uint64_t id, How how) {
      if (by_id.emplace(id, std::move(how)).second) order.push_back(id);
      if (order.size() <= kMost) return;
      by_id.erase(order.front());
      order.pop_front();
    }
    const How* find(std::uint64_t id) const {
      auto found = by_id.find(id);
      return found == by_id.end() ? nullptr : &found->second;
    }
  };
  Memory<End> processes_;
  Memory<Failure> actors_;
  std::unordered_map<std::uint64_t, std::string> stopping_;
};

}  // namespace troupe::head
