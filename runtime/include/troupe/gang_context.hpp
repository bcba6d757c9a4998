#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <troupe/errors.hpp>
#include <troupe/rendezvous.hpp>

namespace troupe {

/// What one rank of a gang knows about its gang. Each actor made by troupe::gang has one, which
/// lives as long as the actor. Any thread of the process may call.
class GangContext {
 public:
  virtual ~GangContext() = default;

  virtual std::uint64_t id() const = 0;  ///< unique in the cluster
  virtual int rank() const = 0;          ///< 0 .. size-1
  virtual int size() const = 0;
  /// Among the gang's ranks on this node, in the order of ranks.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  virtual int node_rank() const = 0;  ///< of this node among the gang's nodes, by their lowest rank
  virtual int node_count() const = 0;
  /// For every rank, its node_rank: size() entries.
  virtual std::vector<int> node_ranks() const = 0;

  /// This node's number in the cluster, as its label troupe.node has it; 0 without a cluster.
  virtual std::uint32_t node() const = 0;
  /// Where this node's processes listen for those of other nodes, e.g. "10.0.0.5"; "127.0.0.1" in a
  /// private cluster.
  virtual std::string host() const = 0;

  virtual Rendezvous& rendezvous() = 0;

  /// Not 0 once a rank of the gang has died or the gang is being ended. Every wait then has to end
  /// at once, with why_broken(). A spinning or sleeping collective can poll this word. It stays
  /// valid as long as the context.
  virtual const std::atomic<std::uint32_t>& broken() const = 0;
  /// What broke the gang, e.g. "rank 1 (pid 42 on node 2) was killed by signal 9". Empty while
  /// broken() is 0.
  virtual Failure why_broken() const = 0;
  /// For waits that can be woken: `then` is called once, when the gang breaks, on a thread that
  /// must not be blocked; if the gang is already broken, at once and on this thread. A wait of `then`
  /// for a value, an actor, a gang or the rendezvous throws std::logic_error on the former thread:
  /// it may start tasks, and wakes who waits for them. What it throws is logged. Once the
  /// result is destroyed, `then` is neither called nor running. The context outlives the result.
  /// nullptr if the gang cannot break.
  [[nodiscard]] virtual std::shared_ptr<void> on_broken(std::function<void()> then) = 0;
};

/// The result of this_gang(): a pointer whose `*` and `->` throw std::logic_error if there is no
/// gang, rather than end the process.
class ThisGang {
 public:
  explicit ThisGang(GangContext* context) : context_{context} {}

  GangContext& operator*() const {
    if (context_ == nullptr) refuse();
    return *context_;
  }
  GangContext* operator->() const { return &**this; }
  operator GangContext*() const { return context_; }  ///< nullptr if there is no gang

 private:
  [[noreturn]] static void refuse();

  GangContext* context_;
};

/// The context of the actor that is running (or being constructed) on this thread; empty if the
/// actor is not a rank of a gang.
ThisGang this_gang();

}  // namespace troupe
