#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include <troupe/errors.hpp>

#include "calls/deaths/death.hpp"
#include "calls/execution_record.hpp"
#include "ids/ids.hpp"

namespace troupe::head {

using runtime::ActorId;
using runtime::ProcessId;

/// How processes ended, and how actors did, for who asks later. Remembers the last kMost of each, and
/// the replies that processes left of the last ones only; a value.
class ExitRecords {
 public:
  static constexpr std::size_t kMost = 100'000;
  /// Of the values in the replies; those of one process stay whatever they take, which its node
  /// bounds (ReplyLog).
  static constexpr std::size_t kMostReplyBytes = std::size_t{16} << 20;

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
      for (const auto& reply : calls.replies) {
        if (reply.caller == caller) death.replies.push_back(reply);
      }
      return death;
    }
  };

  void process_ended(ProcessId process, End end) {
    const auto bytes = bytes_of(end.calls.replies);
    processes_.put(process, std::move(end));
    if (bytes == 0) return;
    with_replies_.push_back({process, bytes});
    reply_bytes_ += bytes;
    while (reply_bytes_ > kMostReplyBytes && with_replies_.size() > 1) forget_oldest_replies();
  }
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
  static std::size_t bytes_of(const std::vector<runtime::KeptReply>& replies) {
    std::size_t bytes = 0;
    for (const auto& reply : replies) {
      const auto* value = std::get_if<troupe::detail::Payload>(&reply.outcome);
      bytes += sizeof reply +
               (value ? value->bytes.size() : std::get<Failure>(reply.outcome).message.size());
    }
    return bytes;
  }
  void forget_oldest_replies() {
    const auto [process, bytes] = with_replies_.front();
    with_replies_.pop_front();
    reply_bytes_ -= bytes;
    if (const auto found = processes_.by_id.find(process); found != processes_.by_id.end())
      found->second.calls.replies = {};
  }

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
  struct Replies {
    ProcessId process{};
    std::size_t bytes = 0;
  };
  std::deque<Replies> with_replies_;  // the longest ended one first
  std::size_t reply_bytes_ = 0;
};

}  // namespace troupe::head
