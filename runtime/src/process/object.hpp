#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include <troupe/detail/core.hpp>

#include "process/address.hpp"

namespace troupe::process {

/// How a call, a fetch or a request ended.
using Outcome = std::variant<detail::Payload, Failure>;

/// Called on the loop with an object of another process whose last handle here is gone: its owner is told.
using ReleaseBorrowed = void (*)(AddressPtr owner, std::uint64_t id);

}  // namespace troupe::process

namespace troupe::detail {

/// The state behind a ref in this process: the owner's own, or a borrower's view of it.
///
///   [pending] --complete (the loop's thread, once)--> [value | failed]
///
/// The outcome is written before the state is published and never changes after, so readers need no lock.
class Object : public std::enable_shared_from_this<Object> {
 public:
  /// An object that this process owns, to be completed later.
  static ObjectPtr pending(std::uint64_t id);
  /// An object that this process owns and that has its value. Any thread.
  static ObjectPtr with_value(std::uint64_t id, Payload value);
  /// An object that `owner` owns. `release` is called when the last handle here is gone.
  static ObjectPtr borrowed(std::uint64_t id, process::AddressPtr owner, process::ReleaseBorrowed release);

  Object(std::uint64_t id, process::AddressPtr owner, process::ReleaseBorrowed release)
      : id_(id), owner_(std::move(owner)), release_(release) {}
  ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::uint64_t id() const { return id_; }
  /// nullptr: this process.
  const process::AddressPtr& owner() const { return owner_; }

  bool ready() const { return ready_.load(std::memory_order_acquire); }
  /// Only where ready().
  const process::Outcome& outcome() const { return outcome_; }

  // ---- the loop's thread only
  /// Publishes the outcome, then runs what waits for it. A second call is ignored: the first outcome stands.
  void complete(process::Outcome outcome);
  /// Calls `then` once ready, at once if it is already.
  void when_ready(std::function<void()> then);
  /// A borrower fetches once: true for the first caller.
  bool start_fetch() { return !std::exchange(fetching_, true); }
  /// What cancel() does for the call that will complete this object.
  std::function<void()> on_cancel;

 private:
  const std::uint64_t id_;
  const process::AddressPtr owner_;
  const process::ReleaseBorrowed release_;
  std::atomic<bool> ready_{false};
  process::Outcome outcome_;
  std::vector<std::function<void()>> waiting_;
  bool fetching_ = false;
};

}  // namespace troupe::detail
