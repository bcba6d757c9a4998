#include "plan/status_nodes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace troupe::launch {

std::vector<NodeRoom> nodes_in(const nlohmann::json& status, const RankNeeds& needs, Share share) {
  std::vector<NodeRoom> nodes;
  for (const auto& node : status.at("nodes")) {
    if (share == Share::Free && node.at("state") != "ready") continue;
    const auto& resources = node.at(share == Share::Free ? "free" : "total");
    NodeRoom room{.cpus = resources.value("cpu", 0.0),
                  .gpus = resources.value("gpu", 0.0),
                  .memory_gb = resources.value("memory", 0.0),
                  .node = node.at("node").get<std::uint32_t>()};
    for (const auto& [key, value] : node.at("labels").items())
      room.labels.emplace_back(key, value.get<std::string>());
    if (has_labels(room, needs)) nodes.push_back(std::move(room));
  }
  return nodes;
}

bool own_gang_starts(const nlohmann::json& status, int pid) {
  const auto is_own = [&](const nlohmann::json& gang) {
    return std::ranges::any_of(status.at("jobs"), [&](const nlohmann::json& job) {
      return job.at("pid") == pid && job.at("job") == gang.at("job");
    });
  };
  return std::ranges::any_of(status.at("gangs"), [&](const nlohmann::json& gang) {
    return gang.at("state") == "starting" && is_own(gang);
  });
}

}  // namespace troupe::launch
