#include <troupe/detail/cluster_nodes.hpp>
#include <troupe/detail/private_cluster.hpp>

#include <memory>
#include <variant>

#include <nlohmann/json.hpp>

#include "actors/actors.hpp"
#include "config/json.hpp"
#include "session/gang_share.hpp"
#include "session/process.hpp"

namespace troupe::detail {
namespace {

using nlohmann::json;

ClusterNode node_from(const json& row) {
  const auto& total = row.at("total");
  return {.number = row.at("node").get<std::uint32_t>(),
          .name = row.at("name").get<std::string>(),
          .cpus = total.value("cpu", 0.0),
          .gpus = total.value("gpu", 0.0)};
}

}  // namespace

bool is_cluster_private() {
  const auto* process = runtime::Process::maybe();
  return process && process->identity().is_private;
}

ObjectPtr ask_for_nodes() {
  auto* process = runtime::Process::maybe();
  return process ? process->ask_head(R"({"do": "nodes"})") : nullptr;
}

std::vector<ClusterNode> nodes_in(const ObjectPtr& answer) {
  if (!answer || !is_ready(*answer) || failure_of(*answer)) return {};
  const auto& text = std::get<Payload>(answer->outcome()).bytes;
  const auto said = json::parse(text, nullptr, false);
  std::vector<ClusterNode> nodes;
  try {
    for (const auto& row : said.at("nodes")) nodes.push_back(node_from(row));
  } catch (const json::exception&) {
    return {};  // of a head that does not know the question
  }
  return nodes;
}

std::vector<std::uint32_t> nodes_of(std::span<const ActorPtr> ranks) {
  if (ranks.empty() || !ranks.front()->gang) return {};
  return std::static_pointer_cast<runtime::GangShare>(ranks.front()->gang)->nodes;
}

ObjectPtr ask_for_signs(std::span<const ActorPtr> ranks) {
  auto* process = runtime::Process::maybe();
  if (!process) return nullptr;
  auto answer = Object::pending(0);
  process->post([process, answer, ranks = std::vector(ranks.begin(), ranks.end())] {
    auto rows = json::array();
    for (const auto& rank : ranks) {
      const auto id = rank->process ? rank->process->process : runtime::ProcessId();
      rows.push_back({{"process", id.value()}, {"last_line", process->last_line_of(id)}});
    }
    answer->complete(Payload{.bytes = config::to_text(rows), .refs = {}});
  });
  return answer;
}

std::vector<RankSign> signs_in(const ObjectPtr& answer) {
  if (!answer || !is_ready(*answer) || failure_of(*answer)) return {};
  std::vector<RankSign> signs;
  for (const auto& row : json::parse(std::get<Payload>(answer->outcome()).bytes)) {
    signs.push_back({.process = row.at("process").get<std::uint64_t>(),
                     .last_line = row.at("last_line").get<std::string>()});
  }
  return signs;
}

}  // namespace troupe::detail
