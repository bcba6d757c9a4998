#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "process/calls.hpp"
#include "process/resolver.hpp"

namespace troupe::detail {

/// What this process knows of one actor. The fields after the mark belong to the loop.
///
///   [asked for] --placed--> [reachable] --process ended / constructor threw / refused--> [dead]
///
/// Calls queue in the order made and leave in that order, each once its arguments are there.
class ActorState {
 public:
  struct Call {
    process::OutgoingCall out;
    ObjectPtr result;
    bool resolved = false;
  };

  ActorState(ActorId actor, std::string actor_type, std::function<void(ActorState&)> at_end)
      : id(actor), type(std::move(actor_type)), last_share(std::move(at_end)) {}
  ~ActorState() {
    if (last_share) last_share(*this);
  }
  ActorState(const ActorState&) = delete;
  ActorState& operator=(const ActorState&) = delete;

  const ActorId id;  // 0: a rank of a gang
  const std::string type;
  const std::function<void(ActorState&)> last_share;  // any thread
  std::atomic<bool> shared{false};  // its handles have left this process, or it has a name: it ends with its job
  bool made_here = true;
  ObjectPtr constructed;       // where another process made the actor: once it is placed
  std::shared_ptr<void> gang;  // keeps a rank's gang

  // ---- the loop's
  process::AddressPtr process;
  std::optional<Failure> dead;
  std::deque<std::shared_ptr<Call>> queue;
};

}  // namespace troupe::detail

namespace troupe::process {

/// The actors that this process made or has handles of. Belongs to the loop.
class Actors {
 public:
  Actors(HeadLink& head, Calls& calls, Resolver& resolver) : head_(head), calls_(calls), resolver_(resolver) {}

  /// Asks the head for a place, then constructs it there.
  void create(const detail::ActorPtr& actor, detail::CallSpec constructor, const detail::RequestOptions& options);
  /// An actor whose process is known: a rank of a gang.
  void construct(const detail::ActorPtr& actor, AddressPtr process, detail::CallSpec constructor,
                 std::function<void(wire::GangInfo::Builder)> gang);
  /// Asks the head where an actor is that another process made.
  void locate(const detail::ActorPtr& actor);
  void call(const detail::ActorPtr& actor, detail::CallSpec call, detail::ObjectPtr result);
  void kill(std::uint64_t actor);
  /// The head knows that the actor's process has ended. -> which it was; nullptr if it is not known here.
  AddressPtr lost(std::uint64_t actor, const Failure& how);

 private:
  using ActorPtr = detail::ActorPtr;
  using Call = detail::ActorState::Call;

  void enqueue(const ActorPtr& actor, Work::Kind kind, detail::CallSpec call, detail::ObjectPtr result,
               std::function<void(wire::GangInfo::Builder)> gang = {});
  void placed(const ActorPtr& actor, AddressPtr process);
  void pump(const ActorPtr& actor);
  void send(const ActorPtr& actor, const std::shared_ptr<Call>& call);
  void finish(const ActorPtr& actor, const std::shared_ptr<Call>& call, Outcome outcome);
  void die(const ActorPtr& actor, Failure how);
  static Failure as_actor_death(const detail::ActorState& actor, Failure how);

  HeadLink& head_;
  Calls& calls_;
  Resolver& resolver_;
  std::unordered_map<std::uint64_t, std::weak_ptr<detail::ActorState>> known_;
};

}  // namespace troupe::process
