// What the head tells of the cluster.
#include "config/name.hpp"
#include "head/control.hpp"

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

json to_json(const scheduler::NodeView& node, const Routes::Node* known) {
  json row{{"node", node.node.value()},  {"name", node.name},
           {"state", node.state},        {"total", to_json(node.total)},
           {"free", to_json(node.free)}, {"processes", node.processes},
           {"idle", node.idle},          {"leases", node.leases},
           {"actors", node.actors},      {"ranks", node.ranks},
           {"blocked", node.blocked}};
  if (known != nullptr && known->usage) row["store"] = to_json(*known->usage);
  if (known != nullptr && !known->logs.empty()) row["logs"] = known->logs;
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
          {"asks for an end of a process", fates_asked_.size()},
          {"asks for an end of a node", node_ends_asked_.size()},
          {"watched owners", owner_watches_.size()},
          {"watched nodes", node_watches_.size()}};
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

json Control::status() const {
  const auto now = Clock::now();
  json out{{"cluster", identity_.cluster()},
           {"epoch", identity_.epoch()},
           {"up_seconds", std::chrono::duration<double>(now - started_).count()},
           {"nodes", json::array()},
           {"jobs", json::array()},
           {"actors", json::array()},
           {"gangs", json::array()},
           {"processes", json::array()},
           {"pending", json::array()},
           {"tables", table_sizes()}};
  for (const auto& node : state_.nodes())
    out["nodes"].push_back(to_json(node, routes_.node(node.node)));
  for (const auto& job : state_.jobs()) out["jobs"].push_back(status_of(job));
  for (const auto& actor : state_.actors()) {
    const auto* process = routes_.process(actor.process);
    out["actors"].push_back({{"actor", actor.actor.value()},
                             {"type", config::printable(actor.type, kMostTypeBytes)},
                             {"name", actor.name},
                             {"job", actor.job.value()},
                             {"state", scheduler::to_string(actor.stage)},
                             {"node", actor.node.value()},
                             {"process", actor.process.value()},
                             {"pid", process ? process->pid : 0}});
  }
  for (const auto& gang : state_.gangs()) {
    out["gangs"].push_back({{"gang", gang.gang.value()},
                            {"job", gang.job.value()},
                            {"size", gang.size},
                            {"state", scheduler::to_string(gang.stage)}});
  }
  for (const auto& process : state_.processes()) {
    const auto* known = routes_.process(process.process);
    out["processes"].push_back({{"process", process.process.value()},
                                {"node", process.node.value()},
                                {"job", process.job.value()},
                                {"state", scheduler::to_string(process.state)},
                                {"use", process.use},
                                {"pid", known ? known->pid : 0}});
  }
  for (const auto& pending : state_.pending()) {
    const auto waited =
        std::chrono::duration<double>(now.time_since_epoch() - pending.since).count();
    out["pending"].push_back({{"what", pending.what},
                              {"job", pending.job.value()},
                              {"process", pending.requester.value()},
                              {"seconds", waited},
                              {"reason", pending.reason}});
  }
  return out;
}

}  // namespace troupe::head
