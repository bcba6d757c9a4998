#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/detail/core.hpp>

#include "ids/address.hpp"

namespace troupe::runtime {

class OutChannel;

/// How a call, a fetch or a request ended.
using Outcome = std::variant<detail::Payload, Failure>;

/// Called on the loop with an object of another process whose last handle here is gone: its owner
/// is told.
using ReleaseBorrowed = void (*)(AddressPtr owner, std::uint64_t id);

}  // namespace troupe::runtime

namespace troupe::detail {

/// The state behind a ref in this process: the owner's own, or a borrower's view of it.
///
///   [pending] --complete (once, any thread)--> [value | failed]
///
/// The outcome is written before the state is published and never changes after, so readers need no
/// lock. What waits for it belongs to the loop, which is told only where something does.
class Object : public std::enable_shared_from_this<Object> {
 public:
  /// An object that this process owns, to be completed later.
  static ObjectPtr pending(std::uint64_t id);
  /// An object that this process owns and that has its value. Any thread.
  static ObjectPtr with_value(std::uint64_t id, Payload value);
  /// An object that `owner` owns. `release` is called when the last handle here is gone.
  static ObjectPtr borrowed(std::uint64_t id, runtime::AddressPtr owner,
                            runtime::ReleaseBorrowed release);

  Object(std::uint64_t id, runtime::AddressPtr owner, runtime::ReleaseBorrowed release,
         std::uint64_t session = 0)
      : id_(id), owner_(std::move(owner)), release_(release), session_(session) {}
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::uint64_t id() const { return id_; }
  /// nullptr: this process.
  const runtime::AddressPtr& owner() const { return owner_; }
  /// How many objects of this process have failed so far: while it stands still, none has.
  static std::uint64_t failures() { return failures_.load(std::memory_order_acquire); }
  /// Its owner is another process, of a session that has ended.
  bool is_stale() const;

  bool ready() const { return (state_.load(std::memory_order_acquire) & kReady) != 0; }
  /// Only where ready().
  const runtime::Outcome& outcome() const { return outcome_; }
  /// Publishes the outcome, then has what waits for it run. A second call is ignored: the first
  /// outcome stands.
  void complete(runtime::Outcome outcome);

  /// Where the answer comes from, so that who waits for it can look there. Set before others know
  /// of the object.
  struct Source {
    std::shared_ptr<runtime::OutChannel> channel;  // of a method's call
    std::uint64_t call = 0;
    std::weak_ptr<void> task;  // through any channel of a lease; Tasks knows what it is
    bool is_task = false;
    std::string_view label = {};           // of the function, for messages; static storage
    int rank = -1;                         // whose call it is; -1: no rank's
    std::weak_ptr<ActorState> actor = {};  // of a method's call that no channel had at once
  };
  Source source;

  /// A call of the actor that lives in this process: it begins only once the one that runs there
  /// has returned. Any thread.
  void note_own_call();
  bool is_own_call() const { return (state_.load(std::memory_order_acquire) & kOwnCall) != 0; }

  // ---- the loop's thread only
  /// Calls `then` once ready, at once if it is already.
  void when_ready(std::function<void()> then);
  /// A borrower fetches once: true for the first caller.
  bool start_fetch();
  /// What cancel() does for the call that will complete this object.
  void set_on_cancel(std::function<void()> cancel);
  std::function<void()> take_on_cancel();

 private:
  static constexpr std::uint32_t kClaimed = 1;  // by who completes it
  static constexpr std::uint32_t kReady = 2;
  static constexpr std::uint32_t kHooks = 4;  // the loop has hooks to run
  static constexpr std::uint32_t kOwnCall = 8;
  struct Hooks {
    std::vector<std::function<void()>> waiting;
    std::function<void()> on_cancel;
    bool fetching = false;
  };
  Hooks& hooks();
  void run_hooks();

  static inline std::atomic<std::uint64_t> failures_{0};

  const std::uint64_t id_;
  const runtime::AddressPtr owner_;
  const runtime::ReleaseBorrowed release_;
  const std::uint64_t session_;  // of a borrowed one
  std::atomic<std::uint32_t> state_{0};
  runtime::Outcome outcome_;
  std::unique_ptr<Hooks> hooks_;
};

}  // namespace troupe::detail
