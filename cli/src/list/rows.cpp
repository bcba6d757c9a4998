#include "list/rows.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "list/running_calls.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;
using Number = std::uint64_t;

/// The status has 0 for a number that is not there yet.
json unless_none(const json& number) { return number.get<Number>() == 0 ? json() : number; }

/// What of this kind ("actor", "gang") waits, by its number.
std::map<Number, json> waiting(const json& status, const char* kind) {
  std::map<Number, json> found;
  for (const auto& pending : status.at("pending")) {
    if (pending.value("kind", "") == kind) found[pending.at(kind).get<Number>()] = pending;
  }
  return found;
}

void add_wait(json& row, const std::map<Number, json>& waiting, Number number) {
  const auto found = waiting.find(number);
  const bool waits = found != waiting.end();
  row["waits"] = waits ? found->second.at("seconds") : json();
  row["reason"] = waits ? found->second.at("reason") : json();
}

void name_jobs(const json& status, json& rows) {
  std::map<Number, std::string> names;
  for (const auto& job : status.at("jobs"))
    names[job.at("job").get<Number>()] = job.at("name").get<std::string>();
  for (auto& row : rows) {
    const auto found = names.find(row.at("job").get<Number>());
    row["job_name"] = found == names.end() ? std::string() : found->second;
  }
}

json leased_row(const json& process, Number lease, const RunningCalls& running) {
  json row{{"lease", lease},
           {"request", nullptr},
           {"job", process.at("job")},
           {"node", process.at("node")},
           {"process", process.at("process")},
           {"pid", unless_none(process.at("pid"))},
           {"waits", nullptr},
           {"what", nullptr},
           {"reason", nullptr}};
  row.update(running.of(process));
  return row;
}

json pending_row(const json& pending) {
  return {{"task", nullptr},
          {"state", "pending"},
          {"runs", nullptr},
          {"lease", nullptr},
          {"request", pending.at("request")},
          {"job", pending.at("job")},
          {"node", nullptr},
          {"process", nullptr},
          {"pid", nullptr},
          {"waits", pending.at("seconds")},
          {"what", pending.at("what")},
          {"reason", pending.at("reason")}};
}

}  // namespace

json node_rows(const json& status) {
  json rows = json::array();
  for (const auto& node : status.at("nodes")) {
    json row = node;
    for (const char* of_head : {"machine", "offers_all_cpus", "store"}) row.erase(of_head);
    for (const auto& [name, amount] : node.at("total").items()) {
      if (!row.at("free").contains(name)) row["free"][name] = 0.0;  // the status leaves out zeros
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

json actor_rows(const json& status) {
  const auto pending = waiting(status, "actor");
  json rows = json::array();
  for (const auto& actor : status.at("actors")) {
    json row = actor;
    for (const char* number : {"node", "process", "pid"}) row[number] = unless_none(row.at(number));
    add_wait(row, pending, actor.at("actor").get<Number>());
    rows.push_back(std::move(row));
  }
  return rows;
}

json task_rows(const json& status) {
  const std::string use = "lease ";
  const RunningCalls running(status.at("running"));
  json rows = json::array();
  for (const auto& process : status.at("processes")) {
    const auto used = process.at("use").get<std::string>();
    if (used.starts_with(use))
      rows.push_back(leased_row(process, std::stoull(used.substr(use.size())), running));
  }
  for (const auto& pending : status.at("pending"))
    if (pending.value("kind", "") == "lease") rows.push_back(pending_row(pending));
  name_jobs(status, rows);
  return rows;
}

json gang_rows(const json& status) {
  const auto pending = waiting(status, "gang");
  json rows = json::array();
  for (const auto& gang : status.at("gangs")) {
    json row = gang;
    std::set<Number> nodes;
    for (const auto& member : gang.at("members")) nodes.insert(member.at("node").get<Number>());
    row["nodes"] = json::array();
    for (const auto node : nodes) {
      if (node != 0) row["nodes"].push_back(node);
    }
    add_wait(row, pending, gang.at("gang").get<Number>());
    rows.push_back(std::move(row));
  }
  return rows;
}

json object_rows(const json& status) {
  std::map<Number, json> processes;
  for (const auto& process : status.at("processes"))
    processes[process.at("process").get<Number>()] = process;
  json rows = status.at("objects").at("objects");
  for (auto& row : rows) {
    row["name"] = row.at("node_name");
    row.erase("node_name");
    const auto owner = processes.find(row.at("owner").get<Number>());
    const bool is_known = owner != processes.end();
    row["owner_pid"] = is_known ? unless_none(owner->second.at("pid")) : json();
    row["owner_node"] = is_known ? unless_none(owner->second.at("node")) : json();
    row["copy"] = row.at("copy").get<bool>() ? "copy" : "original";
    for (auto& process : row["pinned_by"])
      process = process == 0 ? json("the node") : json(std::to_string(process.get<Number>()));
  }
  name_jobs(status, rows);
  std::ranges::stable_sort(rows.get_ref<json::array_t&>(), [](const json& one, const json& other) {
    return one.at("bytes").get<Number>() > other.at("bytes").get<Number>();
  });
  return rows;
}

json store_rows(const json& status) {
  json rows = json::array();
  for (const auto& node : status.at("nodes")) {
    const bool used = node.contains("store");
    json row{{"node", node.at("node")},
             {"name", node.at("name")},
             {"state", used ? "used" : "never used"}};
    for (const char* number : {"objects", "used", "capacity", "pinned", "kept", "spilled"})
      row[number] = used ? node.at("store").at(number) : json();
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The reason is that of what has waited longest.
json job_rows(const json& status) {
  std::map<Number, json> oldest;
  for (const auto& pending : status.at("pending")) {
    auto& known = oldest[pending.at("job").get<Number>()];
    if (known.is_null() || known.at("seconds") < pending.at("seconds")) known = pending;
  }
  json rows = json::array();
  for (const auto& job : status.at("jobs")) {
    json row = job;
    row.erase("ended");
    row.erase("detached");
    row["pid"] = unless_none(job.at("pid"));
    row["state"] = job.at("ended").get<bool>()      ? "ended"
                   : job.at("detached").get<bool>() ? "detached"
                                                    : "running";
    const auto waits = oldest.find(job.at("job").get<Number>());
    row["reason"] = waits == oldest.end() ? json() : waits->second.at("reason");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace troupe::cli
