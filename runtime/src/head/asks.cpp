// What processes ask of the head.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "head/check_names.hpp"
#include "head/control.hpp"
#include "wire/codec.hpp"

namespace troupe::head {
namespace {

scheduler::Need read_need(wire::Request::Reader request) {
  check_names(request.getResources(), request.getLabels());
  scheduler::Need need;
  for (auto amount : request.getResources()) {
    need.resources.set(std::string(amount.getName()), scheduler::Amount::units(amount.getUnits()));
  }
  for (auto label : request.getLabels()) {
    need.labels.emplace_back(label.getKey(), label.getValue());
  }
  std::ranges::sort(need.labels);
  need.spread = request.getSpread();
  return need;
}

}  // namespace

void Control::asked(ProcessId asker, wire::HeadRequest::Reader ask) {
  const auto* process = routes_.process(asker);
  if (!process) return;
  const Asked who{asker, HeadRequestId(ask.getId())};
  try {
    switch (ask.which()) {
      case wire::HeadRequest::LEASE:
        return apply(scheduler::LeaseAsked{.request = open_request(asker, who.id),
                                           .job = process->job,
                                           .requester = asker,
                                           .need = read_need(ask.getLease())});
      case wire::HeadRequest::LEASE_RETURN:
        return apply(scheduler::LeaseReturned{.lease = LeaseId(ask.getLeaseReturn()), .by = asker});
      case wire::HeadRequest::WITHDRAW:
        return withdraw(asker, HeadRequestId(ask.getWithdraw()));
      case wire::HeadRequest::ACTOR:
        return ask_actor(asker, who.id, ask.getActor());
      case wire::HeadRequest::ACTOR_KILL:
        return kill_actor(asker, ActorId(ask.getActorKill()));
      case wire::HeadRequest::ACTOR_MADE:
        detached_made(asker, ActorId(ask.getActorMade()));
        return routes_.tell(who.asker, who.id,
                            [](wire::HeadNotice::Builder tell) { tell.setDone(); });
      case wire::HeadRequest::ACTOR_FIND: {
        const auto find = ask.getActorFind();
        if (find.isName()) check_actor_name(find.getName());
        return find_actor({.asked = who,
                           .job = process->job,
                           .actor = find.isId() ? ActorId(find.getId()) : ActorId(),
                           .name = find.isName() ? std::string(find.getName()) : std::string(),
                           .type = find.getType(),
                           .now = find.getNow()});
      }
      case wire::HeadRequest::GANG:
        return ask_gang(asker, who.id, ask.getGang());
      case wire::HeadRequest::GANG_RELEASE:
        return release_gang(asker, GangId(ask.getGangRelease()));
      case wire::HeadRequest::BLOCKED:
        return apply(scheduler::ProcessBlocked{.process = asker});
      case wire::HeadRequest::UNBLOCKED:
        resuming_[asker] = who.id;
        return apply(scheduler::ProcessUnblocked{.process = asker});
      case wire::HeadRequest::RESOURCES_RETURNED:
        return apply(scheduler::ResourcesReturned{.process = asker});
      case wire::HeadRequest::ENDED:
        return note_end(asker, std::string(ask.getEnded()));
      case wire::HeadRequest::FATE:
        return ask_fate(who, ProcessId(ask.getFate()));
      case wire::HeadRequest::STORE:
        return ask_store(who, ask.getStore());
      case wire::HeadRequest::VALUES_HELD:
        return values_held(asker, ask.getValuesHeld());
      case wire::HeadRequest::NODE_END:
        return ask_node_end(who, NodeId(ask.getNodeEnd()));
    }
  } catch (const std::invalid_argument& error) {  // an amount or a name that no request may have
    refuse(who, Failure::Kind::Refused, error.what());
  }
}

scheduler::RequestId Control::open_request(ProcessId asker, HeadRequestId id) {
  const auto request = ++last_request_;
  requests_[request] = {asker, id};
  request_of_[{asker, id}] = request;
  return request;
}

std::optional<Control::Asked> Control::close_request(scheduler::RequestId request) {
  auto found = requests_.extract(request);
  if (found.empty()) return std::nullopt;
  request_of_.erase({found.mapped().asker, found.mapped().id});
  return found.mapped();
}

void Control::withdraw(ProcessId asker, HeadRequestId id) {
  std::erase_if(searches_, [&](const Search& search) {
    return search.asked.asker == asker && search.asked.id == id;
  });
  std::erase_if(name_waits_, [&](const NameWait& wait) {
    return wait.asked.asker == asker && wait.asked.id == id;
  });
  auto found = request_of_.find({asker, id});
  if (found == request_of_.end()) return;
  const auto request = found->second;
  close_request(request);
  apply(scheduler::RequestWithdrawn{.request = request, .by = asker});
}

/// One that is not placed yet takes its request with it: its calls wait for that answer.
void Control::kill_actor(ProcessId by, scheduler::ActorId id) {
  if (is_killed_before_its_name(by, id)) return;
  const auto detached =
      std::ranges::find_if(detached_, [id](const auto& entry) { return entry.second.actor == id; });
  if (detached != detached_.end()) {
    detached->second.is_killed = true;
    boost::asio::post(loop_, [this] { end_detached(); });
  }
  const auto actor = state_.actor(id);
  apply(scheduler::ActorReleased{
      .actor = id, .by = who_may_kill(by, id), .why = "killed by its handle"});
  if (!actor || state_.actor(id)) return;
  if (const auto asked = close_request(actor->request)) {
    refuse(*asked, Failure::Kind::ActorDied,
           fmt::format("actor {} was killed by its handle before it was placed", actor->type));
  }
}

/// One that is not placed yet takes its request with it, which nobody waits for then.
void Control::release_gang(ProcessId by, scheduler::GangId id) {
  const auto gang = state_.gang(id);
  apply(scheduler::GangReleased{.gang = id, .by = by, .why = "its gang was given up"});
  if (gang && !state_.gang(id)) close_request(gang->request);
}

void Control::refuse(const Asked& asked, Failure::Kind kind, const std::string& why) {
  routes_.tell(asked.asker, asked.id, [&](wire::HeadNotice::Builder tell) {
    runtime::write_failure(tell.initRefused(), {.kind = kind, .message = why});
  });
}

void Control::ask_actor(ProcessId asker, HeadRequestId id, wire::ActorAsk::Reader ask) {
  auto job = routes_.process(asker)->job;
  auto requester = asker;
  if (ask.getName().size() > 0) check_actor_name(ask.getName());
  auto need = read_need(ask.getRequest());
  if (ask.getDetached()) {
    const auto why = why_not_detached(asker, ask);
    if (!why.empty()) return refuse({asker, id}, Failure::Kind::Refused, why);
    if (waits_for_name({asker, id}, ask)) return;
    std::tie(job, requester) = start_detached(asker, ask);
  }
  apply(scheduler::ActorAsked{.request = open_request(asker, id),
                              .actor = ActorId(ask.getActor()),
                              .job = job,
                              .requester = requester,
                              .need = std::move(need),
                              .name = ask.getName(),
                              .type = ask.getType()});
}

void Control::ask_gang(ProcessId asker, HeadRequestId id, wire::GangAsk::Reader ask) {
  if (ask.getStrategy() > static_cast<std::uint8_t>(scheduler::Strategy::StrictSpread)) {
    return refuse({asker, id}, Failure::Kind::Refused,
                  fmt::format("a gang has no strategy {}", ask.getStrategy()));
  }
  auto need = read_need(ask.getEach());
  apply(scheduler::GangAsked{.request = open_request(asker, id),
                             .gang = GangId(ask.getGang()),
                             .job = routes_.process(asker)->job,
                             .requester = asker,
                             .size = ask.getSize(),
                             .each = std::move(need),
                             .strategy = static_cast<scheduler::Strategy>(ask.getStrategy()),
                             .awaited = ask.getAwaited()});
}

/// Of several nodes on one machine, the first.
void Control::ask_store(const Asked& asked, const std::string& machine) {
  runtime::Address found;
  for (const auto& [id, node] : routes_.nodes()) {
    if (!node.store || node.store->machine != machine) continue;
    found = *node.store;
    found.node = id;
    break;
  }
  routes_.tell(asked.asker, asked.id, [&](wire::HeadNotice::Builder tell) {
    runtime::write_address(tell.initStore(), found);
  });
}

void Control::ask_node_end(const Asked& asked, scheduler::NodeId node) {
  if (!routes_.node(node)) return answer_done(asked);
  node_ends_asked_[node].push_back(asked);
}

void Control::answer_done(const Asked& asked) {
  routes_.tell(asked.asker, asked.id, [](wire::HeadNotice::Builder tell) { tell.setDone(); });
}

void Control::find_actor(const Search& search) {
  carry_out_effects();
  if (answer_search(search)) return;
  if (!search.now) return searches_.push_back(search);
  refuse(search.asked, Failure::Kind::TimedOut,
         fmt::format("there is no actor '{}' that can be called now{}", search.name,
                     why_not_there(search.job, search.name)));
}

bool Control::answer_search(const Search& search) {
  const auto found = search.name.empty() ? state_.actor(search.actor)
                                         : state_.actor_named(search.job, search.name);
  if (!found) {
    if (!search.name.empty()) return false;
    const auto* ended = exit_records_.actor(search.actor);
    const auto how =
        ended ? ended->message : fmt::format("there is no actor {} (any more)", search.actor);
    refuse(search.asked, Failure::Kind::ActorDied, how);
    return true;
  }
  const auto& actor = *found;
  const auto detached = detached_.find(actor.job);
  if (actor.job != search.job && detached == detached_.end()) {
    refuse(search.asked, Failure::Kind::Refused,
           fmt::format("{} belongs to job {}, another program, and ends with it: make it with "
                       "Options::detached for others to call it",
                       search.name.empty() ? fmt::format("actor {}", search.actor)
                                           : fmt::format("actor '{}'", search.name),
                       actor.job));
    return true;
  }
  // Who made it may wait for its constructor; others find it once it is there.
  if (detached != detached_.end() && detached->second.creator) return false;
  if (actor.type != search.type) {
    refuse(search.asked, Failure::Kind::Refused,
           fmt::format("actor '{}' has the type {}, not {}", search.name, actor.type, search.type));
    return true;
  }
  const auto* process = routes_.process(found->process);
  if (found->stage != scheduler::Stage::Placed || !process || !process->address) return false;
  routes_.tell(search.asked.asker, search.asked.id, [&](wire::HeadNotice::Builder tell) {
    write_grant(tell.initActor(), actor, *process, search.job);
  });
  return true;
}

}  // namespace troupe::head
