#include "process/actors.hpp"

#include <utility>

#include <fmt/format.h>

#include "process/codec.hpp"

namespace troupe::process {

void Actors::create(const ActorPtr& actor, detail::CallSpec constructor, const detail::RequestOptions& options) {
  known_[actor->id] = actor;
  enqueue(actor, Work::Kind::Constructor, std::move(constructor), actor->constructed);
  std::weak_ptr weak = actor;
  head_.ask(
      [&](wire::Ask::Builder ask) {
        auto out = ask.initActor();
        out.setActor(actor->id);
        out.setName(options.name);
        out.setType(actor->type);
        write_request(out.initRequest(), options);
      },
      [this, weak](wire::Tell::Reader tell) {
        if (auto actor = weak.lock()) placed(actor, read_address(tell.getActor().getProcess()));
      },
      [this, weak](const Failure& refused) {
        if (auto actor = weak.lock()) die(actor, refused);
      });
}

void Actors::construct(const ActorPtr& actor, AddressPtr process, detail::CallSpec constructor,
                       std::function<void(wire::GangInfo::Builder)> gang) {
  enqueue(actor, Work::Kind::Constructor, std::move(constructor), actor->constructed, std::move(gang));
  placed(actor, std::move(process));
}

void Actors::locate(const ActorPtr& actor) {
  known_[actor->id] = actor;
  std::weak_ptr weak = actor;
  head_.ask(
      [&](wire::Ask::Builder ask) {
        ask.initActorFind().setId(actor->id);
        ask.getActorFind().setType(actor->type);
      },
      [this, weak](wire::Tell::Reader tell) {
        if (auto actor = weak.lock()) placed(actor, read_address(tell.getActor().getProcess()));
      },
      [this, weak](const Failure& refused) {
        if (auto actor = weak.lock()) die(actor, refused);
      });
}

void Actors::call(const ActorPtr& actor, detail::CallSpec call, detail::ObjectPtr result) {
  enqueue(actor, Work::Kind::Method, std::move(call), std::move(result));
}

void Actors::enqueue(const ActorPtr& actor, Work::Kind kind, detail::CallSpec spec, detail::ObjectPtr result,
                     std::function<void(wire::GangInfo::Builder)> gang) {
  if (actor->dead) return result->complete(*actor->dead);
  auto call = std::make_shared<Call>();
  call->out.kind = kind;
  call->out.function = spec.function;
  call->out.gang = std::move(gang);
  call->result = std::move(result);
  actor->queue.push_back(call);
  call->result->on_cancel = [this, actor, call] {
    std::erase(actor->queue, call);
    call->result->complete(
        Failure{.kind = Failure::Kind::Cancelled,
                .message = fmt::format("{} was cancelled before it was sent", call->out.function.label)});
    pump(actor);
  };
  resolver_.resolve(std::move(spec.arguments), [this, actor, call](Resolver::Resolved resolved) {
    if (auto* failure = std::get_if<Failure>(&resolved)) {
      std::erase(actor->queue, call);
      if (call->out.kind == Work::Kind::Constructor) die(actor, *failure);
      call->result->complete(*failure);
    } else {
      call->out.arguments = std::move(std::get<0>(resolved));
      call->resolved = true;
    }
    pump(actor);
  });
}

void Actors::placed(const ActorPtr& actor, AddressPtr process) {
  actor->process = std::move(process);
  if (!actor->made_here) actor->constructed->complete(detail::Payload{});
  pump(actor);
}

void Actors::pump(const ActorPtr& actor) {
  while (actor->process && !actor->dead && !actor->queue.empty() && actor->queue.front()->resolved) {
    auto call = std::move(actor->queue.front());
    actor->queue.pop_front();
    if (!call->result->ready()) send(actor, call);
  }
}

void Actors::send(const ActorPtr& actor, const std::shared_ptr<Call>& call) {
  const auto id = calls_.send(actor->process, call->out,
                              [this, actor, call](Outcome outcome) { finish(actor, call, std::move(outcome)); });
  call->out.arguments.clear();
  if (call->result->ready()) return;
  call->result->on_cancel = [this, process = actor->process, id] { calls_.cancel(process, id); };
}

void Actors::finish(const ActorPtr& actor, const std::shared_ptr<Call>& call, Outcome outcome) {
  if (auto* failure = std::get_if<Failure>(&outcome)) {
    if (failure->kind == Failure::Kind::ProcessDied) {
      *failure = as_actor_death(*actor, std::move(*failure));
      die(actor, *failure);
    } else if (call->out.kind == Work::Kind::Constructor) {
      die(actor, *failure);
    }
  }
  call->result->complete(std::move(outcome));
}

void Actors::die(const ActorPtr& actor, Failure how) {
  if (actor->dead) return;
  actor->dead = how;
  if (actor->constructed) actor->constructed->complete(how);
  for (auto& call : std::exchange(actor->queue, {})) call->result->complete(how);
}

Failure Actors::as_actor_death(const detail::ActorState& actor, Failure how) {
  how.kind = Failure::Kind::ActorDied;
  how.message = fmt::format("actor {}: {}", actor.type, how.message);
  return how;
}

void Actors::kill(std::uint64_t actor) {
  head_.post([actor](wire::Ask::Builder ask) { ask.setActorKill(actor); });
}

AddressPtr Actors::lost(std::uint64_t actor, const Failure& how) {
  auto found = known_.find(actor);
  if (found == known_.end()) return nullptr;
  auto state = found->second.lock();
  known_.erase(found);
  if (!state) return nullptr;
  die(state, as_actor_death(*state, how));
  return state->process;
}

}  // namespace troupe::process
