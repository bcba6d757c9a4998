// Actors that outlive the programs that made them, each in a job of its own (docs/detached.md).
#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "config/name.hpp"
#include "head/control.hpp"
#include "wire/codec.hpp"

namespace troupe::head {

std::string Control::why_not_detached(ProcessId creator, wire::ActorAsk::Reader ask) const {
  const auto job = routes_.process(creator)->job;
  if (!routes_.jobs().contains(job)) return fmt::format("job {} has ended", job);
  if (std::string_view(ask.getName().cStr()).find('/') == std::string_view::npos)
    return "a detached actor has a namespace before its name, as 'shared/counter'";
  if (const auto same = state_.actor(ActorId(ask.getActor())))
    return fmt::format("actor {} is there already", same->actor);
  return {};
}

std::pair<JobId, ProcessId> Control::start_detached(ProcessId creator, wire::ActorAsk::Reader ask) {
  const auto& made_by = routes_.jobs().at(routes_.process(creator)->job);
  const auto job = ++last_job_;
  const auto in_its_name = state_.new_process_id();
  // It runs its creator's program, and prints to its log alone.
  routes_.add_job(job, {.connection = nullptr,
                        .announcement = made_by.announcement,
                        .shows_output = false,
                        .heard = Clock::now()});
  detached_[job] = {.actor = ActorId(ask.getActor()),
                    .creator = creator,
                    .in_its_name = in_its_name,
                    .name = ask.getName(),
                    .type = ask.getType()};
  log_(fmt::format("job {} started: the detached actor '{}' of job {}", job,
                   config::printable(std::string(ask.getName())), routes_.process(creator)->job));
  apply(scheduler::JobStarted{.job = job, .driver = in_its_name});
  keep_creator(creator);
  return {job, in_its_name};
}

void Control::detached_made(ProcessId creator, scheduler::ActorId actor) {
  const auto made = std::ranges::find_if(detached_, [&](const auto& entry) {
    return entry.second.actor == actor && entry.second.creator == creator;
  });
  if (made != detached_.end()) {
    made->second.creator = {};
    if (const auto view = state_.actor(actor)) {
      made->second.node = view->node;
      const auto* node = routes_.node(view->node);
      made->second.node_name = node != nullptr ? node->name : std::string();
      lost_actors_.forget(made->second.name);
      killed_actors_.forget(made->second.name);
    }
    name_settled(made->first);
  }
  keep_creator(creator);
  std::erase_if(searches_, [this](const Search& search) { return answer_search(search); });
}

void Control::values_held(ProcessId process, bool any) {
  if (any) {
    holders_.insert(process);
  } else {
    holders_.erase(process);
  }
  keep_creator(process);
}

/// A worker process that constructs a detached actor is not stopped for idleness, as one that others
/// have refs of.
void Control::keep_creator(ProcessId creator) {
  const bool constructs = std::ranges::any_of(
      detached_, [creator](const auto& entry) { return entry.second.creator == creator; });
  apply(scheduler::ValuesHeld{.process = creator, .any = constructs || holders_.contains(creator)});
}

/// Those whose actor is gone, however it went, or whose creator has ended before its constructor
/// had returned: nobody could say whether there is an object.
void Control::end_detached() {
  // How an actor was lost is among the effects that wait, and is noted with its job.
  carry_out_effects();
  std::vector<JobId> over;
  for (const auto& [id, job] : detached_) {
    const bool is_forsaken = job.creator && !routes_.process(job.creator);
    if (is_forsaken || !state_.actor(job.actor)) over.push_back(id);
  }
  for (const auto id : over) {
    const auto job = detached_.extract(id).mapped();
    const auto why = job.creator && !routes_.process(job.creator)
                         ? fmt::format(
                               "process {}, which made the detached actor '{}', ended "
                               "before its constructor had returned",
                               job.creator, job.name)
                     : job.creator
                         // Another one may have the name.
                         ? fmt::format("its detached actor '{}' was not made", job.name)
                         : fmt::format("the detached actor '{}' has ended", job.name);
    if (job.is_killed && !job.creator)
      killed_actors_.add(ended_now(job, "it was killed through a handle"));
    log_(fmt::format("job {} ended: {}", id, why));
    apply(scheduler::JobEnded{.job = id, .reason = why});
    boost::asio::post(loop_, [this, id] { routes_.remove_job(id); });
    if (job.creator) keep_creator(job.creator);
    name_settled(id);
  }
}

/// Only the actor's own process can say it, and its last word counts.
void Control::note_end(ProcessId process, std::string_view end) {
  const auto found = detached_.find(routes_.process(process)->job);
  if (found == detached_.end()) return;
  auto& job = found->second;
  if (process_of_actor(job.actor) != process) return;
  job.end = end.substr(0, LostActors::kMostEndBytes);
}

/// Who finds it later is to hear more than that there is none. Before it is constructed its creator
/// hears of it.
void Control::note_if_lost(scheduler::ActorId actor, const std::string& how) {
  const auto found = std::ranges::find_if(
      detached_, [actor](const auto& entry) { return entry.second.actor == actor; });
  if (found == detached_.end()) return;
  const auto& job = found->second;
  if (job.creator || job.is_killed) return;
  lost_actors_.add(ended_now(job, how));
}

LostActors::Lost Control::ended_now(const DetachedJob& job, const std::string& how) const {
  return {.actor = job.actor,
          .name = job.name,
          .type = job.type,
          .node = job.node,
          .node_name = job.node_name,
          .with_node = routes_.node(job.node) == nullptr,
          .how = how,
          .end = job.end,
          .at = now_in_seconds()};
}

/// Behind "there is no actor that can be called now": that there is one which is not placed or not
/// constructed yet, or how the last detached actor of that name ended; or nothing.
std::string Control::why_not_there(JobId job, const std::string& name) const {
  if (state_.actor_named(job, name))
    return ": it waits for its resources (`troupe status` says for which) or its constructor";
  const auto* lost = lost_actors_.find(name);
  if (lost == nullptr) lost = killed_actors_.find(name);
  if (lost == nullptr) return {};
  const auto at = static_cast<std::time_t>(lost->at);
  return fmt::format(
      "; the detached actor of that name ended at {:%Y-%m-%d %H:%M:%S} UTC, {:.0f} s ago: {}. No "
      "program has made it again since",
      fmt::gmtime(at), std::max(0.0, now_in_seconds() - lost->at), lost->how);
}

double Control::now_in_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Who is told that the name is taken can only look for its actor, which may never be constructed.
/// The constructor's own process is told at once: it would wait for itself.
bool Control::waits_for_name(const Asked& asked, wire::ActorAsk::Reader ask) {
  const std::string_view name = ask.getName().cStr();
  const auto holder = std::ranges::find_if(detached_, [name](const auto& entry) {
    return entry.second.creator && entry.second.name == name;
  });
  if (holder == detached_.end() || routes_.process(asked.asker)->job == holder->first) return false;
  auto kept = std::make_shared<capnp::MallocMessageBuilder>();
  kept->setRoot(ask);
  name_waits_.push_back({.asked = asked, .behind = holder->first, .ask = std::move(kept)});
  return true;
}

/// Its calls wait for the answer to its request.
bool Control::is_killed_before_its_name(ProcessId by, scheduler::ActorId actor) {
  const auto wait = std::ranges::find_if(name_waits_, [&](const NameWait& one) {
    return one.asked.asker == by && one.ask->getRoot<wire::ActorAsk>().getActor() == actor.value();
  });
  if (wait == name_waits_.end()) return false;
  const auto killed = *wait;
  name_waits_.erase(wait);
  refuse(killed.asked, Failure::Kind::ActorDied,
         fmt::format("actor '{}' was killed by its handle before it was placed",
                     killed.ask->getRoot<wire::ActorAsk>().getName().cStr()));
  return true;
}

/// The first that waited may have the name now, and the others wait for that one.
void Control::name_settled(JobId job) {
  std::vector<NameWait> waited;
  std::erase_if(name_waits_, [&](const NameWait& wait) {
    if (wait.behind != job) return false;
    waited.push_back(wait);
    return true;
  });
  for (const auto& wait : waited)
    ask_actor(wait.asked.asker, wait.asked.id, wait.ask->getRoot<wire::ActorAsk>().asReader());
}

/// A detached actor is killed by whoever has its handle.
ProcessId Control::who_may_kill(ProcessId by, scheduler::ActorId id) const {
  const auto actor = state_.actor(id);
  const auto detached = actor ? detached_.find(actor->job) : detached_.end();
  return detached == detached_.end() ? by : detached->second.in_its_name;
}

void Control::write_grant(wire::ActorGrant::Builder grant, const scheduler::ActorView& actor,
                          const Routes::Process& process, JobId asker) const {
  grant.setActor(actor.actor.value());
  grant.setType(actor.type);
  runtime::write_address(grant.initProcess(), *process.address);
  if (actor.job == asker) return;
  const auto key = transport::job_key(token_, actor.job);
  grant.setJob(actor.job.value());
  grant.setJobKey(capnp::Data::Reader(key.data(), key.size()));
}

}  // namespace troupe::head
