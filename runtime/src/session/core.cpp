// The functions of detail/core.hpp: from the user's threads to the loop of this process, and back
// by the doorbell.
#include <troupe/detail/core.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "config/name.hpp"
#include "config/token.hpp"
#include "objects/blocking.hpp"
#include "objects/stored.hpp"
#include "os/running_time.hpp"
#include "session/awaited.hpp"
#include "session/gang_share.hpp"
#include "session/process.hpp"
#include "tasks/wait_set.hpp"
#include "wire/codec.hpp"

namespace troupe::detail {
namespace {

using runtime::Process;
using runtime::wait_giving_cpu_back;

ObjectPtr pending_result(Process& process) { return Object::pending(process.next_object_id()); }

/// The last share in an actor is gone; any thread.
void end_unshared(ActorState& actor) {
  auto* process = Process::maybe();
  if (!process || actor.is_stale() || actor.shared.load(std::memory_order_relaxed)) return;
  process->post([id = actor.id] {
    if (auto* here = Process::maybe()) here->actors().kill(id);
  });
}

bool is_own_call(const Process& process, const Object& object) {
  const auto& channel = object.source.channel;
  return object.is_own_call() || (channel && channel->callee() == process.identity().self->process);
}

/// On the thread that runs an actor's methods: fewer than `count` can come before the one that
/// waits for them returns.
bool waits_for_itself(const Process& process, std::span<const ObjectPtr> objects,
                      std::size_t count) {
  if (!runtime::Executor::is_this_thread()) return false;
  const auto own = std::ranges::count_if(objects, [&](const ObjectPtr& object) {
    return !object->ready() && is_own_call(process, *object);
  });
  return objects.size() - static_cast<std::size_t>(own) < count;
}

constexpr auto kWaitsForItself =
    "this actor waits for itself: a call of it begins only once its method that waits here has "
    "returned. Return the Ref instead of waiting for it, or call the member function directly";

}  // namespace

ObjectPtr submit_task(CallSpec call, const RequestOptions& options) {
  auto& process = Process::current();
  auto result = pending_result(process);
  process.tasks().submit(std::move(call), options, result);
  return result;
}

ActorPtr spawn_actor(CallSpec constructor, std::string_view type, const RequestOptions& options) {
  auto& process = Process::current();
  auto actor = std::make_shared<ActorState>(process.next_shared_id<runtime::ActorId>(),
                                            std::string(type), end_unshared);
  actor->shared = !options.name.empty();
  actor->detached = options.detached;
  actor->constructed = pending_result(process);
  if (options.detached) {
    process.warn_if_cluster_is_private();
    process.note_detached(options.name, actor);
  }
  process.post([&process, actor, constructor = std::move(constructor), options]() mutable {
    process.actors().create(actor, std::move(constructor), options);
  });
  return actor;
}

ObjectPtr call_actor(const ActorPtr& actor, CallSpec call) {
  auto& process = Process::current();
  auto result = pending_result(process);
  if (actor->is_stale()) {
    result->complete(runtime::of_an_ended_session());
    return result;
  }
  process.actors().call(actor, std::move(call), result);
  return result;
}

ObjectPtr actor_ready(const ActorPtr& actor) {
  actor->awaited.store(true, std::memory_order_relaxed);
  return actor->constructed;
}

ActorPtr adopt_actor(ActorId id, std::string_view type) {
  auto& process = Process::current();
  auto actor = std::make_shared<ActorState>(runtime::ActorId(id), std::string(type), nullptr);
  actor->shared = true;
  actor->made_here = false;
  actor->constructed = pending_result(process);
  process.post([&process, actor] { process.actors().locate(actor); });
  return actor;
}

namespace {

/// How long the head may take to say that there is none.
constexpr std::chrono::milliseconds kAnswerAtOnce{5000};
/// The same, where the time to find it is over anyway.
constexpr std::chrono::milliseconds kLastAnswer{500};

/// A search that the head answers.
struct Search {
  ObjectPtr found = Object::pending(0);
  std::shared_ptr<ActorId> id = std::make_shared<ActorId>(0);
  std::shared_ptr<runtime::HeadRequestId> asked = std::make_shared<runtime::HeadRequestId>();
};

/// `now`: it is answered at once, whatever there is.
Search search(Process& process, std::string_view name, std::string_view type, bool now) {
  Search made;
  process.post([&process, made, now, name = std::string(name), type = std::string(type)] {
    *made.asked = process.head().request(
        [&](wire::HeadRequest::Builder ask) {
          auto find = ask.initActorFind();
          find.setName(name);
          find.setType(type);
          find.setNow(now);
        },
        [made](wire::HeadNotice::Reader tell) {
          *made.id = tell.getActor().getActor();
          made.found->complete(Payload{});
        },
        [made](const Failure& failure) { made.found->complete(failure); });
  });
  return made;
}

/// -> whether it was answered in time; where not, nobody waits for it any more.
bool is_answered(Process& process, const Search& search, std::chrono::milliseconds timeout) {
  if (wait_giving_cpu_back(
          process, [&] { return search.found->ready(); }, runtime::deadline_after(timeout)))
    return true;
  process.post([&process, asked = search.asked] { process.head().withdraw(*asked); });
  return false;
}

/// What the head says of an actor that was not found in time.
std::string why_not_found(Process& process, std::string_view name, std::string_view type) {
  const auto last = search(process, name, type, true);
  if (is_answered(process, last, kLastAnswer)) {
    const auto* failure = std::get_if<Failure>(&last.found->outcome());
    if (failure != nullptr && failure->kind == Failure::Kind::TimedOut) return failure->message;
  }
  return "there is none";
}

/// Its address; empty: none is known.
std::string head_of_this_machine() try { return config::known_head(); } catch (const Error&) {
  return {};  // nor is there a folder in which one would stand
}

/// Behind that an actor was not found: where a driver looks for it, as far as that may be wrong.
std::string where_it_looked(const Process& process, std::string_view name) {
  if (name.find('/') == std::string_view::npos)
    return " in this program (those of others have a namespace before their names, as "
           "'shared/counter')";
  if (!process.identity().is_private) return {};
  const auto head = head_of_this_machine();
  return fmt::format(
      ". This program's cluster is private, so that it finds no actor of another program: give it "
      "--address {}, or set TROUPE_ADDRESS{}",
      head.empty() ? "HOST:PORT" : config::printable(head),
      head.empty() ? "" : " (a head of this machine is, or was, there)");
}

}  // namespace

ActorPtr find_actor(std::string_view name, std::string_view type,
                    std::chrono::milliseconds timeout) {
  config::require_name("the name to find", name);
  auto& process = Process::current();
  const bool now = timeout.count() <= 0;
  const auto made = search(process, name, type, now);
  if (!is_answered(process, made, now ? kAnswerAtOnce : timeout)) {
    if (now) {
      raise({.kind = Failure::Kind::Disconnected,
             .message = fmt::format("the head has not said within {} ms whether there is an actor "
                                    "'{}': it is busy, or cannot be reached",
                                    kAnswerAtOnce.count(), name)});
    }
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("no actor '{}' could be called within {} ms: {}{}", name,
                                  timeout.count(), why_not_found(process, name, type),
                                  where_it_looked(process, name))});
  }
  if (const auto* failure = std::get_if<Failure>(&made.found->outcome())) {
    auto told = *failure;
    if (told.kind == Failure::Kind::TimedOut) told.message += where_it_looked(process, name);
    raise(told);
  }
  return adopt_actor(*made.id, type);
}

ActorId share_actor(const ActorPtr& actor) {
  if (!actor->id) {
    raise({.kind = Failure::Kind::Refused,
           .message = "the handle of a gang's rank cannot leave the process that made the gang"});
  }
  if (actor->is_stale()) raise(runtime::of_an_ended_session());
  actor->shared.store(true, std::memory_order_relaxed);
  return actor->id.value();
}

void kill_actor(const ActorPtr& actor) {
  auto& process = Process::current();
  if (actor->is_stale()) return;
  actor->awaited = true;
  process.post([&process, actor] {
    if (!actor->gang) return process.actors().kill(actor->id);
    const auto gang =
        // No rank lives without the others.
        std::static_pointer_cast<runtime::GangShare>(actor->gang)->id;
    process.head().notify(
        [gang](wire::HeadRequest::Builder ask) { ask.setGangRelease(gang.value()); });
  });
}

ObjectPtr put_object(Payload value) {
  return Object::with_value(Process::current().next_object_id(), std::move(value));
}

bool is_ready(const Object& object) { return object.ready(); }

std::optional<Failure> failure_of(const Object& object) {
  const auto* failure = std::get_if<Failure>(&object.outcome());
  return failure ? std::optional(*failure) : std::nullopt;
}

const Payload& get_object(const ObjectPtr& object,
                          std::optional<std::chrono::milliseconds> timeout) {
  const auto deadline = runtime::deadline_after(timeout);
  if (!object->ready()) {
    wait_objects({&object, 1}, 1, timeout);
    if (!object->ready()) {
      auto& process = Process::current();
      const bool itself = waits_for_itself(process, {&object, 1}, 1);
      const auto what = runtime::describe_awaited(process, *object);
      raise({.kind = Failure::Kind::TimedOut,
             .message = fmt::format("the value{}{} was not there within {} ms{}{}",
                                    what.empty() ? "" : " of ", what, timeout->count(),
                                    itself ? ": " : "", itself ? kWaitsForItself : "")});
    }
  }
  if (const auto* failure = std::get_if<Failure>(&object->outcome())) raise(*failure);
  const auto& payload = std::get<Payload>(object->outcome());
  if (payload.stored) payload.stored->fetch(deadline);
  return payload;
}

namespace {

/// Until `done()`, which `count` of the objects that are ready make true for sure.
template <class Done>
void wait_until(std::span<const ObjectPtr> objects, std::size_t count, runtime::Deadline deadline,
                CpuMeanwhile cpu, Done done) {
  auto& process = Process::current();
  const Process::Waiting waiting(process);
  for (const auto& object : objects) {
    if (object->owner() && !object->ready())
      process.post([&process, object] { process.resolver().fetch(object); });
  }
  runtime::WaitSet wait_set(process.tasks(), objects);
  // Looked at before a sleep only: a wait that is over soon pays nothing for it.
  bool in_vain = false;
  const auto is_over = [&] {
    wait_set.drain();
    return in_vain || done();
  };
  const auto before_sleep = [&] {
    wait_set.before_sleep();
    in_vain = !deadline && waits_for_itself(process, objects, count);
  };
  if (cpu == CpuMeanwhile::Kept) {
    runtime::wait(is_over, before_sleep, deadline);
  } else {
    wait_giving_cpu_back(process, is_over, before_sleep, deadline);
  }
  if (in_vain && !done()) throw std::logic_error(kWaitsForItself);
}

}  // namespace

std::size_t wait_objects(std::span<const ObjectPtr> objects, std::size_t count,
                         std::optional<std::chrono::milliseconds> timeout, CpuMeanwhile cpu) {
  auto ready = [&] {
    return static_cast<std::size_t>(
        std::ranges::count_if(objects, [](const auto& o) { return o->ready(); }));
  };
  count = std::min(count, objects.size());
  if (ready() < count) {
    wait_until(objects, count, runtime::deadline_after(timeout), cpu,
               [&] { return ready() >= count; });
  }
  return ready();
}

namespace {

/// How much longer the failure of the rank that broke a gang may take than those of the others, in
/// time that this process runs.
constexpr std::chrono::milliseconds kForTheCause{2'000};

bool has_failed(const ObjectPtr& object) {
  return object->ready() && std::holds_alternative<Failure>(object->outcome());
}

/// `failed` is one that has; -> the one that is to blame for it.
std::size_t cause_of(std::span<const ObjectPtr> objects, std::size_t failed) {
  const auto is_consequence = [](const Failure& failure) {
    return failure.kind == Failure::Kind::GangBroken;
  };
  if (!is_consequence(std::get<Failure>(objects[failed]->outcome()))) return failed;
  std::size_t cause = failed;
  const auto all_told = [&] {
    // Looked at first: the cause may come while the others are gone through.
    const bool all_ready = std::ranges::all_of(objects, [](auto& o) { return o->ready(); });
    const auto found = std::ranges::find_if(objects, [&](const ObjectPtr& object) {
      return has_failed(object) && !is_consequence(std::get<Failure>(object->outcome()));
    });
    if (found != objects.end()) cause = static_cast<std::size_t>(found - objects.begin());
    return cause != failed || all_ready;
  };
  if (all_told()) return cause;
  const Process::Waiting waiting(Process::current());  // in one piece, which ~Driver waits for
  for (os::RunningTime time(kForTheCause); !all_told() && !time.is_over();) {
    time.pass([&](std::chrono::milliseconds slice) {
      wait_until(objects, objects.size(), runtime::deadline_after(slice), CpuMeanwhile::Kept,
                 all_told);
    });
  }
  return cause;
}

}  // namespace

std::optional<std::size_t> wait_all(std::span<const ObjectPtr> objects,
                                    std::optional<std::chrono::milliseconds> timeout) {
  const auto first_failed = [&] {
    return static_cast<std::size_t>(std::ranges::find_if(objects, has_failed) - objects.begin());
  };
  std::size_t there = 0;  // those before it are ready
  auto failures = Object::failures() - 1;
  std::size_t found = objects.size();
  const auto done = [&] {
    while (there < objects.size() && objects[there]->ready()) ++there;
    if (const auto now = Object::failures(); now != failures) {
      failures = now;
      found = first_failed();
    }
    return there == objects.size() || found != objects.size();
  };
  if (!done()) {
    wait_until(objects, objects.size(), runtime::deadline_after(timeout), CpuMeanwhile::GivenBack,
               done);
  }
  if (!done()) {
    const auto missing = std::ranges::count_if(objects, [](const auto& o) { return !o->ready(); });
    auto& process = Process::current();
    const bool itself = waits_for_itself(process, objects, objects.size());
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("{} of {} values were not there within {} ms{}{}{}", missing,
                                  objects.size(), timeout->count(),
                                  runtime::describe_missing(process, objects), itself ? ": " : "",
                                  itself ? kWaitsForItself : "")});
  }
  found = first_failed();
  if (found == objects.size()) return std::nullopt;
  return cause_of(objects, found);
}

ObjectPtr cluster_end() {
  auto* process = Process::maybe();
  return process ? process->cluster_end() : nullptr;
}

void cancel_object(const ObjectPtr& object) {
  if (object->ready()) return;
  auto* process = Process::maybe();
  if (!process) return;  // also in a forked copy, whose rings are another's
  if (object->source.channel) return object->source.channel->cancel(object->source.call);
  process->post([process, object] {
    if (object->source.is_task && process->tasks().cancel(object)) return;
    if (auto cancel = object->take_on_cancel()) cancel();
  });
}

}  // namespace troupe::detail

namespace troupe {

ThisGang this_gang() {
  auto* process = runtime::Process::maybe();
  return ThisGang(process ? process->gangs().context() : nullptr);
}

}  // namespace troupe
