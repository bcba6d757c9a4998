#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "actors/incarnation.hpp"
#include "calls/by_value.hpp"
#include "calls/calls.hpp"
#include "calls/resolver.hpp"
#include "ids/session.hpp"

namespace troupe::detail {

/// What this process knows of one actor. The fields after the mark belong to the loop.
///
/// Incarnation says which calls may leave, and when it is dead. Calls leave in the order made:
/// straight into the channel to its process where there is one and the arguments are plain and
/// here, else through the loop, where they queue until their arguments are there.
class ActorState {
 public:
  struct Call {
    runtime::OutgoingCall out;
    ObjectPtr result;
  };

  /// The loop holds calls of this actor, or a thread is about to hand it one: a later call must not
  /// overtake them. Counts from the call to its leaving, whichever way.
  std::atomic<std::uint32_t> behind_loop{0};
  /// Published once by the loop, for threads that find nothing behind it; kept until the end by
  /// channel_kept.
  std::atomic<runtime::OutChannel*> channel{nullptr};

  ActorState(runtime::ActorId actor, std::string actor_type,
             std::function<void(ActorState&)> at_end)
      : id(actor), type(std::move(actor_type)), last_share(std::move(at_end)) {}
  ~ActorState() {
    if (last_share) last_share(*this);
  }
  ActorState(const ActorState&) = delete;
  ActorState& operator=(const ActorState&) = delete;

  const runtime::ActorId id;  // none: a rank of a gang
  const std::uint64_t session = runtime::current_session();
  bool is_stale() const { return session != runtime::current_session(); }
  const std::string type;
  const std::function<void(ActorState&)> last_share;  // any thread
  // Its handles have left this process, or it has a name: it ends with its job.
  std::atomic<bool> shared{false};
  // The program has asked whether it is constructed, or has killed it.
  std::atomic<bool> awaited{false};
  bool made_here = true;
  bool detached = false;       // of those that were made here
  ObjectPtr constructed;       // where another process made the actor: once it is placed
  std::shared_ptr<void> gang;  // keeps a rank's gang
  std::uint32_t rank = 0;      // in it

  // ---- the loop's
  runtime::AddressPtr process;
  // To a process of another job, whose arguments are made plain one call after the other: in order.
  std::deque<std::shared_ptr<Call>> leaving;
  std::shared_ptr<Call> bringing;  // the one whose arguments are made plain now
  runtime::OutChannelPtr channel_kept;
  runtime::Incarnation incarnation;
  std::unordered_map<runtime::Incarnation::Number, std::shared_ptr<Call>> queued;
  runtime::Incarnation::Number last_call = 0;
};

}  // namespace troupe::detail

namespace troupe::runtime {

/// The actors that this process made or has handles of. Belongs to the loop, but for call() and
/// what becomes of it.
class Actors : public CallReceiver {
 public:
  Actors(boost::asio::io_context& loop, HeadLink& head, Calls& calls, Resolver& resolver)
      : loop_(loop), head_(head), calls_(calls), resolver_(resolver), constructors_(head) {}

  /// Asks the head for a place, then constructs it there.
  void create(const detail::ActorPtr& actor, detail::CallSpec constructor,
              const detail::RequestOptions& options);
  /// An actor whose process is known: a rank of a gang.
  void construct(const detail::ActorPtr& actor, AddressPtr process, detail::CallSpec constructor,
                 std::function<void(wire::GangInfo::Builder)> gang);
  /// Asks the head where an actor is that another process made.
  void locate(const detail::ActorPtr& actor);
  /// Any thread.
  void call(const detail::ActorPtr& actor, detail::CallSpec call, const detail::ObjectPtr& result);
  void kill(ActorId actor);
  /// The session ends: what waits for large arguments fails with this.
  void end(const Failure& why);
  /// The head knows that the actor's process has ended. -> which it was; nullptr if it is not known
  /// here.
  AddressPtr lost(ActorId actor, const Failure& how);

  // ---- of methods' calls
  void answered(PendingCall call, Outcome outcome, std::chrono::nanoseconds run_time) override;
  void lost(PendingCall call, Progress progress, const Failure& how) override;

 private:
  /// Constructors' calls; the loop's alone.
  struct Constructors : CallReceiver {
    explicit Constructors(HeadLink& to_head) : head(to_head) {}
    void answered(PendingCall call, Outcome outcome, std::chrono::nanoseconds run_time) override;
    void lost(PendingCall call, Progress progress, const Failure& how) override;
    void say_made(const detail::ActorState& actor, const detail::ObjectPtr& result,
                  Outcome outcome);
    void failed(const detail::ActorPtr& actor, const Failure& why);
    void give_up(const detail::ActorState& actor);

    HeadLink& head;
  };
  using ActorPtr = detail::ActorPtr;
  using Call = detail::ActorState::Call;

  void note(const ActorPtr& actor);
  void enqueue(const ActorPtr& actor, Work::Kind kind, detail::CallSpec call,
               detail::ObjectPtr result, os::Ticks called,
               std::function<void(wire::GangInfo::Builder)> gang = {});
  void placed(const ActorPtr& actor, AddressPtr process);
  void cannot_construct(const ActorPtr& actor, Incarnation::Number number, const Failure& why);
  void perform(const ActorPtr& actor, const Incarnation::Effects& effects);
  void send(const ActorPtr& actor, const std::shared_ptr<Call>& call);
  void send_by_value(const ActorPtr& actor);
  void leave_with(const ActorPtr& actor, const std::shared_ptr<Call>& call, ByValue arguments);
  static bool send_directly(const ActorPtr& actor, const detail::CallSpec& call,
                            const detail::ObjectPtr& result, CallReceiver& receiver);
  static void leave(detail::ActorState& actor, const Call& call);
  static void end(const ActorPtr& actor, const Incarnation::End& call);
  static void die(const ActorPtr& actor, const Failure& how);
  static Failure as_actor_death(const detail::ActorState& actor, Failure how);

  boost::asio::io_context& loop_;
  HeadLink& head_;
  Calls& calls_;
  Resolver& resolver_;
  Constructors constructors_;
  /// Those that handles of this process stand for, one for each handle that was made or received.
  std::unordered_multimap<ActorId, std::weak_ptr<detail::ActorState>> known_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::size_t sweep_at_ = 64;  // entries whose handles are gone are looked for then
};

}  // namespace troupe::runtime
