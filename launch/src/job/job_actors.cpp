#include "job/job_actors.hpp"

#include <algorithm>
#include <utility>

namespace troupe::launch {
namespace {

using nlohmann::json;

std::string name_of_node(const json& status, int number) {
  for (const auto& node : status.at("nodes")) {
    if (node.at("node").get<int>() == number) return node.at("name").get<std::string>();
  }
  return number == 0 ? std::string() : std::to_string(number);
}

std::string reason_of(const json& status, const json& actor) {
  for (const auto& pending : status.at("pending")) {
    if (pending.value("actor", json()) == actor.at("actor"))
      return pending.at("reason").get<std::string>();
  }
  return {};
}

bool has_node(const json& status, const std::string& name) {
  return std::ranges::any_of(status.at("nodes"),
                             [&](const json& node) { return node.at("name") == name; });
}

}  // namespace

JobActors actors_of_jobs(const json& status) {
  JobActors found;
  for (const auto& actor : status.at("actors")) {
    const auto name = actor.at("name").get<std::string>();
    const auto job = job_of_actor(name);
    const auto kept = job_of_keeper(name);
    if (job.empty() && kept.empty()) continue;
    auto& place = job.empty() ? found.keepers[kept] : found.hosts[job];
    place = {.node = name_of_node(status, actor.at("node").get<int>()),
             .state = actor.at("state").get<std::string>(),
             .reason = reason_of(status, actor)};
  }
  return found;
}

std::map<std::string, ListedJob> lost_jobs(const json& status, const JobActors& there) {
  std::map<std::string, ListedJob> lost;
  for (const auto& actor : status.at("lost_actors")) {
    const auto name = actor.at("name").get<std::string>();
    const auto job = job_of_actor(name).empty() ? job_of_keeper(name) : job_of_actor(name);
    if (job.empty() || there.has(job)) continue;
    const auto node = actor.at("node").get<std::string>();
    auto end = end_in(actor.at("end").get<std::string>());
    // The log of an ended job goes with the node, whenever that leaves.
    const bool with_node = actor.at("with_node").get<bool>() || (end && !has_node(status, node));
    lost[job] = {.name = job,
                 .node = node,
                 .info = std::move(end),
                 .lost = LostJob{.with_node = with_node,
                                 .how = actor.at("how").get<std::string>(),
                                 .at = actor.at("time").get<double>()}};
  }
  return lost;
}

}  // namespace troupe::launch
