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
          {"requests", requests_.size()},
          {"requests by asker", request_of_.size()},
          {"searches for actors", searches_.size()},
          {"processes that resume", resuming_.size()},
          {"processes that are stopped", exit_records_.stopping()},
          {"ends of processes", exit_records_.processes()},
          {"ends of actors", exit_records_.actors()},
          {"asks for an end of a process", fates_asked_.size()},
          {"asks for an end of a node", node_ends_asked_.size()},
          {"watched owners", owner_watches_.size()},
          {"watched nodes", node_watches_.size()}};
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
  for (const auto& job : state_.jobs()) {
    const auto known = jobs_.find(job.job);
    auto text = to_json(job);
    text["name"] = known == jobs_.end() ? "" : known->second.name;
    text["pid"] = known == jobs_.end() ? 0 : known->second.pid;
    out["jobs"].push_back(std::move(text));
  }
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
