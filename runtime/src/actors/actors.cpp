#include "actors/actors.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "config/audience.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

Failure cancelled(const detail::ActorState::Call& call) {
  return {.kind = Failure::Kind::Cancelled,
          .message = fmt::format("{} was cancelled before it was sent", call.out.function.label)};
}

/// Of a call that its actor's process took with it: which one it was. The calls of a trainable's
/// ranks are Troupe's own, not methods of what the user has named.
Failure of_call(const detail::ActorState& actor, std::string_view label, Progress progress,
                Failure how) {
  if (config::audience() != config::Audience::Api || !label.starts_with(actor.type)) return how;
  const auto state = [progress] {
    switch (progress) {
      case Progress::NotBegun:
        return "had not begun";
      case Progress::UnderWay:
        return "had not returned";
      case Progress::Finished:
        return "had returned, and its result was lost";
      case Progress::Unknown:
        break;
    }
    return "got no answer";
  }();
  how.message = fmt::format("{} {}: {}", label, state, how.message);
  return how;
}

/// As the head refused it.
Failure of_actor(const detail::ActorState& actor, const std::string& name, Failure why) {
  if (why.kind != Failure::Kind::Impossible || config::audience() != config::Audience::Api)
    return why;
  why.message = fmt::format("actor {}{} can never be placed: {}", actor.type,
                            name.empty() ? "" : fmt::format(" '{}'", name), why.message);
  return why;
}

}  // namespace

void Actors::create(const ActorPtr& actor, detail::CallSpec constructor,
                    const detail::RequestOptions& options) {
  note(actor);
  enqueue(actor, Work::Kind::Constructor, std::move(constructor), actor->constructed, os::ticks());
  std::weak_ptr weak = actor;
  head_.request(
      [&](wire::HeadRequest::Builder ask) {
        auto out = ask.initActor();
        out.setActor(actor->id.value());
        out.setName(options.name);
        out.setType(actor->type);
        out.setDetached(options.detached);
        write_request(out.initRequest(), options);
      },
      [this, weak](wire::HeadNotice::Reader tell) {
        if (auto actor = weak.lock()) placed(actor, read_grant(tell.getActor()));
      },
      [this, weak, name = options.name](const Failure& refused) {
        if (auto actor = weak.lock()) die(actor, of_actor(*actor, name, refused));
      });
}

void Actors::construct(const ActorPtr& actor, AddressPtr process, detail::CallSpec constructor,
                       std::function<void(wire::GangInfo::Builder)> gang) {
  enqueue(actor, Work::Kind::Constructor, std::move(constructor), actor->constructed, os::ticks(),
          std::move(gang));
  placed(actor, std::move(process));
}

void Actors::locate(const ActorPtr& actor) {
  note(actor);
  std::weak_ptr weak = actor;
  head_.request(
      [&](wire::HeadRequest::Builder ask) {
        ask.initActorFind().setId(actor->id.value());
        ask.getActorFind().setType(actor->type);
      },
      [this, weak](wire::HeadNotice::Reader tell) {
        if (auto actor = weak.lock()) placed(actor, read_grant(tell.getActor()));
      },
      [this, weak](const Failure& refused) {
        if (auto actor = weak.lock()) die(actor, refused);
      });
}

// ---- calls --------------------------------------------------------------------------------------

void Actors::call(const ActorPtr& actor, detail::CallSpec call, const detail::ObjectPtr& result) {
  result->source.label = call.function.label;
  if (actor->gang) result->source.rank = static_cast<int>(actor->rank);
  if (send_directly(actor, call, result, *this)) return;
  result->source.actor = actor;
  actor->behind_loop.fetch_add(1, std::memory_order_relaxed);
  boost::asio::post(loop_,
                    [this, actor, call = std::move(call), result, called = os::ticks()]() mutable {
                      enqueue(actor, Work::Kind::Method, std::move(call), result, called);
                    });
}

bool Actors::send_directly(const ActorPtr& actor, const detail::CallSpec& call,
                           const detail::ObjectPtr& result, CallReceiver& receiver) {
  auto* channel = actor->channel.load(std::memory_order_acquire);
  if (!channel || actor->behind_loop.load(std::memory_order_relaxed) != 0) return false;
  PendingCall direct{.result = result,
                     .receiver = &receiver,
                     .context = actor,
                     .label = call.function.label,
                     .called = os::ticks()};
  result->source.channel = actor->channel_kept;
  const auto id = channel->send(Work::Kind::Method, call.function, call.arguments, direct);
  if (id) {
    result->source.call = *id;
    channel->drain_now_and_then(*id);
  } else {
    result->source.channel = nullptr;
  }
  return id.has_value();
}

/// The call is no longer the loop's to order.
void Actors::leave(detail::ActorState& actor, const Call& call) {
  if (call.out.kind == Work::Kind::Method)
    actor.behind_loop.fetch_sub(1, std::memory_order_release);
}

void Actors::enqueue(const ActorPtr& actor, Work::Kind kind, detail::CallSpec spec,
                     detail::ObjectPtr result, os::Ticks called,
                     std::function<void(wire::GangInfo::Builder)> gang) {
  auto call = std::make_shared<Call>();
  call->out.kind = kind;
  call->out.function = spec.function;
  call->out.called = called;
  call->out.gang = std::move(gang);
  call->result = std::move(result);
  const auto number = ++actor->last_call;
  actor->queued.emplace(number, call);
  perform(actor, actor->incarnation.on_call(number));
  if (actor->incarnation.death()) return;
  const bool is_constructor = kind == Work::Kind::Constructor;
  call->result->set_on_cancel([this, actor, number, is_constructor, why = cancelled(*call)] {
    if (!is_constructor) return perform(actor, actor->incarnation.on_cancelled(number, why));
    cannot_construct(actor, number, why);
  });
  resolver_.resolve(std::move(spec.arguments), [this, actor, call, number,
                                                is_constructor](Resolver::Resolved resolved) {
    if (const auto* failure = std::get_if<Failure>(&resolved)) {
      if (is_constructor) return cannot_construct(actor, number, *failure);
      return perform(actor, actor->incarnation.on_argument_failed(number, *failure, false));
    }
    call->out.arguments = std::move(std::get<0>(resolved));
    perform(actor, actor->incarnation.on_resolved(number));
  });
}

/// Its constructor has not left, and never will.
void Actors::cannot_construct(const ActorPtr& actor, Incarnation::Number number,
                              const Failure& why) {
  perform(actor, actor->incarnation.on_argument_failed(number, why, true));
  constructors_.give_up(*actor);
}

void Actors::placed(const ActorPtr& actor, AddressPtr process) {
  actor->process = std::move(process);
  if (!actor->made_here) actor->constructed->complete(detail::Payload{});
  perform(actor, actor->incarnation.on_placed());
}

void Actors::perform(const ActorPtr& actor, const Incarnation::Effects& effects) {
  for (const auto& effect : effects) {
    if (const auto* over = std::get_if<Incarnation::End>(&effect)) {
      end(actor, *over);
      continue;
    }
    const auto call = actor->queued.extract(std::get<Incarnation::Send>(effect).call).mapped();
    if (actor->process->access) {
      call->result->set_on_cancel([result = std::weak_ptr(call->result), call = call.get()] {
        if (const auto waiting = result.lock()) waiting->complete(cancelled(*call));
      });
      actor->leaving.push_back(call);
      send_by_value(actor);
    } else if (!call->result->ready()) {
      send(actor, call);
    }
    leave(*actor, *call);
  }
}

/// Those that leave, one after the other, until the large arguments of one have to be waited for.
void Actors::send_by_value(const ActorPtr& actor) {
  while (!actor->bringing && !actor->leaving.empty()) {
    const auto call = actor->bringing = actor->leaving.front();
    actor->leaving.pop_front();
    const auto is_within = std::make_shared<bool>(true);
    bring_by_value(
        call->out.arguments, call->out.function.label,
        [this, alive = std::weak_ptr(alive_), actor, call, is_within](ByValue arguments) {
          if (alive.expired()) return;
          // What becomes of it may make others leave: behind those that do.
          leave_with(actor, call, std::move(arguments));
          actor->bringing = nullptr;
          if (!*is_within) send_by_value(actor);
        });
    *is_within = false;
  }
}

/// Nothing that is waited for comes any more.
void Actors::end(const Failure& why) {
  std::vector<ActorPtr> actors;
  for (const auto& [id, known] : known_) {
    if (auto actor = known.lock()) actors.push_back(std::move(actor));
  }
  for (const auto& actor : actors) {
    auto calls = std::exchange(actor->leaving, {});
    if (const auto call = std::exchange(actor->bringing, nullptr)) calls.push_front(call);
    for (const auto& call : calls) call->result->complete(why);
  }
}

void Actors::leave_with(const ActorPtr& actor, const std::shared_ptr<Call>& call,
                        ByValue arguments) {
  if (const auto* failure = std::get_if<Failure>(&arguments)) {
    if (call->out.kind == Work::Kind::Constructor) constructors_.failed(actor, *failure);
    call->result->complete(*failure);
  } else if (!call->result->ready()) {
    call->out.arguments = std::move(std::get<0>(arguments));
    send(actor, call);
  }
}

void Actors::end(const ActorPtr& actor, const Incarnation::End& over) {
  const auto call = actor->queued.extract(over.call).mapped();
  leave(*actor, *call);
  call->result->complete(over.why);
}

void Actors::send(const ActorPtr& actor, const std::shared_ptr<Call>& call) {
  PendingCall direct{.result = call->result,
                     .receiver = this,
                     .context = actor,
                     .label = call->out.function.label};
  if (call->out.kind == Work::Kind::Constructor) direct.receiver = &constructors_;
  if (calls_.is_self(*actor->process)) call->result->note_own_call();
  calls_.send(actor->process, call->out, std::move(direct));
  call->out.arguments.clear();
  if (actor->channel_kept || actor->incarnation.death()) return;
  actor->channel_kept = calls_.channel(actor->process->process);
  actor->channel.store(actor->channel_kept.get(), std::memory_order_release);
}

// ---- what becomes of them -----------------------------------------------------------------------

void Actors::answered(PendingCall call, Outcome outcome, std::chrono::nanoseconds) {
  call.result->complete(std::move(outcome));
}

void Actors::lost(PendingCall call, Progress progress, const Failure& how) {
  const auto actor = std::static_pointer_cast<detail::ActorState>(call.context);
  const bool died = how.kind == Failure::Kind::ProcessDied;
  const auto death = died ? as_actor_death(*actor, how) : how;
  if (died) die(actor, death);
  call.result->complete(died ? of_call(*actor, call.label, progress, death) : death);
}

void Actors::Constructors::answered(PendingCall call, Outcome outcome, std::chrono::nanoseconds) {
  const auto actor = std::static_pointer_cast<detail::ActorState>(call.context);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    failed(actor, *failure);
  } else if (actor->detached) {
    return say_made(*actor, call.result, std::move(outcome));
  }
  call.result->complete(std::move(outcome));
}

/// Nobody hears that a detached actor is made before the head has: who hears of it may end this
/// process, which the actor is to outlive.
void Actors::Constructors::say_made(const detail::ActorState& actor,
                                    const detail::ObjectPtr& result, Outcome outcome) {
  auto made = std::make_shared<Outcome>(std::move(outcome));
  head.request([&](wire::HeadRequest::Builder ask) { ask.setActorMade(actor.id.value()); },
               [result, made](wire::HeadNotice::Reader) { result->complete(std::move(*made)); },
               [result](const Failure& failure) { result->complete(failure); });
}

void Actors::Constructors::failed(const ActorPtr& actor, const Failure& why) {
  die(actor, why);
  give_up(*actor);
}

/// A detached actor would stay without an object.
void Actors::Constructors::give_up(const detail::ActorState& actor) {
  if (!actor.detached) return;
  head.notify([&](wire::HeadRequest::Builder ask) { ask.setActorKill(actor.id.value()); });
}

void Actors::Constructors::lost(PendingCall call, Progress, const Failure& how) {
  const auto actor = std::static_pointer_cast<detail::ActorState>(call.context);
  const auto death = how.kind == Failure::Kind::ProcessDied ? as_actor_death(*actor, how) : how;
  failed(actor, death);
  call.result->complete(death);
}

void Actors::die(const ActorPtr& actor, const Failure& how) {
  if (actor->incarnation.death()) return;
  actor->channel.store(nullptr, std::memory_order_release);
  const auto effects = actor->incarnation.on_death(how);
  if (actor->constructed) actor->constructed->complete(how);
  for (const auto& effect : effects) end(actor, std::get<Incarnation::End>(effect));
}

Failure Actors::as_actor_death(const detail::ActorState& actor, Failure how) {
  how.kind = Failure::Kind::ActorDied;
  const auto which = actor.gang
                         ? fmt::format("rank {} of a gang of actors {}", actor.rank, actor.type)
                         : "actor " + actor.type;
  how.message = fmt::format("{}: {}", which, how.message);
  return how;
}

void Actors::kill(ActorId actor) {
  head_.notify([actor](wire::HeadRequest::Builder ask) { ask.setActorKill(actor.value()); });
}

/// An actor that its handles end is not heard of again.
void Actors::note(const ActorPtr& actor) {
  if (known_.size() >= sweep_at_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * known_.size());
  }
  known_.emplace(actor->id, actor);
}

AddressPtr Actors::lost(ActorId actor, const Failure& how) {
  std::vector<ActorPtr> handles;
  const auto [first, last] = known_.equal_range(actor);
  for (auto next = first; next != last; ++next) {
    if (auto handle = next->second.lock()) handles.push_back(std::move(handle));
  }
  known_.erase(first, last);
  AddressPtr process;
  for (const auto& handle : handles) {
    die(handle, as_actor_death(*handle, how));
    if (handle->process) process = handle->process;
  }
  return process;
}

}  // namespace troupe::runtime
