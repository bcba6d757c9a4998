// What the head tells of the cluster.
#include <unordered_map>
#include <utility>

#include "config/name.hpp"
#include "head/control.hpp"
#include "transport/handshake/version.hpp"

namespace troupe::head {
namespace {

using nlohmann::json;

constexpr std::size_t kMostTypeBytes = 1024;  // of an actor: a template's name may be long

json to_json(const scheduler::Resources& resources) {
  json out = json::object();
  for (const auto& [name, amount] : resources.entries()) out[std::string(name)] = amount.units();
  return out;
}

json to_json(const Routes::StoreUsage& usage) {
  return {{"capacity", usage.capacity}, {"used", usage.used},       {"pinned", usage.pinned},
          {"kept", usage.kept},         {"spilled", usage.spilled}, {"objects", usage.objects}};
}

json to_json(const scheduler::NodeView& node, const Routes::Node* known,
             Control::Clock::time_point now) {
  json labels = json::object();
  for (const auto& [key, value] : node.labels) labels[key] = value;
  json row{{"labels", std::move(labels)},
           {"node", node.node.value()},
           {"name", node.name},
           {"state", node.state},
           {"total", to_json(node.total)},
           {"free", to_json(node.free)},
           {"reserved", to_json(node.reserved)},
           {"processes", node.processes},
           {"idle", node.idle},
           {"leases", node.leases},
           {"actors", node.actors},
           {"ranks", node.ranks},
           {"blocked", node.blocked}};
  if (known == nullptr) return row;
  row["machine"] = known->machine;
  row["offers_all_cpus"] = known->offers_all_cpus;
  row["silent_seconds"] = std::chrono::duration<double>(now - known->heard).count();
  if (known->usage) row["store"] = to_json(*known->usage);
  if (!known->logs.empty()) row["logs"] = known->logs;
  return row;
}

json to_json(const scheduler::JobView& job) {
  return {{"job", job.job.value()},     {"weight", job.weight},  {"ended", job.ended},
          {"processes", job.processes}, {"leases", job.leases},  {"actors", job.actors},
          {"gangs", job.gangs},         {"pending", job.pending}};
}

}  // namespace

json Control::table_sizes() const {
  return {{"routes to nodes", routes_.nodes().size()},
          {"routes to jobs", routes_.jobs().size()},
          {"routes to processes", routes_.processes()},
          {"jobs", jobs_.size()},
          {"jobs of detached actors", detached_.size()},
          {"requests", requests_.size()},
          {"requests by asker", request_of_.size()},
          {"searches for actors", searches_.size()},
          {"asks that wait for a name", name_waits_.size()},
          {"processes that resume", resuming_.size()},
          {"processes that are stopped", exit_records_.stopping()},
          {"ends of processes", exit_records_.processes()},
          {"ends of actors", exit_records_.actors()},
          {"lost detached actors", lost_actors_.all().size()},
          {"killed detached actors", killed_actors_.all().size()},
          {"asks for an end of a process", fates_asked_.size()},
          {"asks for an end of a node", node_ends_asked_.size()},
          {"watched owners", owner_watches_.size()},
          {"watched nodes", node_watches_.size()}};
}

json Control::ends_with_cluster() const {
  constexpr std::size_t kMostNames = 1000;
  json programs = json::array(), actors = json::array();
  std::size_t working = 0;  // actors that have not ended what they do
  for (const auto& [id, job] : jobs_) {
    if (programs.size() < kMostNames) programs.push_back(config::printable(job.name));
  }
  for (const auto& [id, job] : detached_) {
    if (!job.end.empty()) continue;
    ++working;
    if (actors.size() < kMostNames) actors.push_back(config::printable(job.name));
  }
  return {{"programs", jobs_.size()},
          {"program_names", std::move(programs)},
          {"detached_actors", working},
          {"detached_actor_names", std::move(actors)}};
}

std::optional<ProcessId> Control::process_of_actor(scheduler::ActorId actor) const {
  const auto found = state_.actor(actor);
  const auto process = found ? found->process : exit_records_.process_of(actor);
  return process ? std::optional(process) : std::nullopt;
}

std::optional<ProcessId> Control::process_of_actor(std::string_view name) const {
  std::optional<ProcessId> process;
  for (const auto& actor : state_.actors()) {
    if (actor.name != name || !actor.process) continue;
    if (process) {
      throw std::invalid_argument(
          fmt::format("actors of several jobs have the name '{}': give the number of one, as "
                      "`troupe status` shows it",
                      name));
    }
    process = actor.process;
  }
  return process;
}

json Control::status_of(const scheduler::JobView& job) const {
  auto out = to_json(job);
  out["name"] = "";
  out["pid"] = 0;
  if (const auto known = jobs_.find(job.job); known != jobs_.end()) {
    out["name"] = known->second.name;
    out["pid"] = known->second.pid;
  }
  const auto detached = detached_.find(job.job);
  out["detached"] = detached != detached_.end();
  if (detached != detached_.end()) out["name"] = detached->second.name;
  return out;
}

namespace {

/// What a request that waits is for: the actor or the gang, where it is no lease.
struct Subjects {
  std::unordered_map<scheduler::RequestId, scheduler::ActorView> actors;
  std::unordered_map<scheduler::RequestId, scheduler::GangView> gangs;
};

Subjects waiting_subjects(const scheduler::State& state) {
  Subjects subjects;
  for (auto& actor : state.actors()) {
    const auto request = actor.request;
    if (request) subjects.actors.emplace(request, std::move(actor));
  }
  for (auto& gang : state.gangs()) {
    const auto request = gang.request;
    if (request) subjects.gangs.emplace(request, std::move(gang));
  }
  return subjects;
}

/// "kind" is lease, actor or gang; the latter two have their number beside it.
void add_subject(json& row, scheduler::RequestId request, const Subjects& subjects) {
  row["kind"] = "lease";
  row["type"] = "";
  if (const auto actor = subjects.actors.find(request); actor != subjects.actors.end()) {
    row["kind"] = "actor";
    row["actor"] = actor->second.actor.value();
    row["type"] = config::printable(actor->second.type, kMostTypeBytes);
  } else if (const auto gang = subjects.gangs.find(request); gang != subjects.gangs.end()) {
    row["kind"] = "gang";
    row["gang"] = gang->second.gang.value();
  }
}

json actors_of(const scheduler::State& state, const Routes& routes) {
  json rows = json::array();
  for (const auto& actor : state.actors()) {
    const auto* process = routes.process(actor.process);
    rows.push_back({{"actor", actor.actor.value()},
                    {"type", config::printable(actor.type, kMostTypeBytes)},
                    {"name", actor.name},
                    {"job", actor.job.value()},
                    {"state", scheduler::to_string(actor.stage)},
                    {"node", actor.node.value()},
                    {"process", actor.process.value()},
                    {"pid", process ? process->pid : 0}});
  }
  return rows;
}

json gangs_of(const scheduler::State& state) {
  json rows = json::array();
  for (const auto& gang : state.gangs()) {
    json members = json::array();  // by rank
    for (const auto& member : gang.members)
      members.push_back({{"node", member.node.value()}, {"process", member.process.value()}});
    rows.push_back({{"gang", gang.gang.value()},
                    {"job", gang.job.value()},
                    {"size", gang.size},
                    {"state", scheduler::to_string(gang.stage)},
                    {"members", std::move(members)}});
  }
  return rows;
}

json processes_of(const scheduler::State& state, const Routes& routes) {
  json rows = json::array();
  for (const auto& process : state.processes()) {
    const auto* known = routes.process(process.process);
    rows.push_back({{"process", process.process.value()},
                    {"node", process.node.value()},
                    {"job", process.job.value()},
                    {"state", scheduler::to_string(process.state)},
                    {"use", process.use},
                    {"held", to_json(process.held)},
                    {"pid", known ? known->pid : 0}});
  }
  return rows;
}

}  // namespace

json Control::lost_actor_rows() const {
  json rows = json::array();
  for (const auto& lost : lost_actors_.all()) {
    rows.push_back({{"actor", lost.actor.value()},
                    {"name", lost.name},
                    {"type", config::printable(lost.type, kMostTypeBytes)},
                    {"node", lost.node_name},
                    {"with_node", lost.with_node},
                    {"how", lost.how},
                    {"end", lost.end},
                    {"time", lost.at}});
  }
  return rows;
}

json Control::pending_rows() const {
  const auto now = Clock::now();
  const auto subjects = waiting_subjects(state_);
  json rows = json::array();
  for (const auto& pending : state_.pending()) {
    const auto waited =
        std::chrono::duration<double>(now.time_since_epoch() - pending.since).count();
    const auto job = jobs_.find(pending.job);
    json row{{"request", pending.request.value()},
             {"what", pending.what},
             {"name", job == jobs_.end() ? "" : job->second.name},
             {"job", pending.job.value()},
             {"process", pending.requester.value()},
             {"seconds", waited},
             {"reason", pending.reason}};
    add_subject(row, pending.request, subjects);
    rows.push_back(std::move(row));
  }
  return rows;
}

json Control::nodes_and_totals() const {
  auto nodes = json::array();
  for (const auto& node : state_.nodes()) {
    nodes.push_back(
        {{"node", node.node.value()}, {"name", node.name}, {"total", to_json(node.total)}});
  }
  return {{"nodes", std::move(nodes)}};
}

json Control::status() const {
  const auto now = Clock::now();
  const auto unix_time = std::chrono::system_clock::now().time_since_epoch();
  json out{{"cluster", identity_.cluster()},
           {"epoch", identity_.epoch()},
           {"version", transport::kVersion},
           {"time", std::chrono::duration<double>(unix_time).count()},
           {"up_seconds", std::chrono::duration<double>(now - started_).count()},
           {"nodes", json::array()},
           {"jobs", json::array()},
           {"actors", actors_of(state_, routes_)},
           {"lost_actors", lost_actor_rows()},
           {"gangs", gangs_of(state_)},
           {"processes", processes_of(state_, routes_)},
           {"pending", pending_rows()},
           {"tables", table_sizes()}};
  for (const auto& node : state_.nodes())
    out["nodes"].push_back(to_json(node, routes_.node(node.node), now));
  for (const auto& job : state_.jobs()) out["jobs"].push_back(status_of(job));
  return out;
}

}  // namespace troupe::head
