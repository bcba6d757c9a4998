#include "head/returns/node_returns.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "os/machine.hpp"
#include "transport/handshake/proof.hpp"

namespace troupe::head {
namespace {

/// Where the node's own process listens, as long as it lives.
transport::Endpoint listener_of(const runtime::Address& store) {
  if (!store.unix_name.empty() && store.machine == os::machine_id())
    return {.host = {}, .port = 0, .unix_name = store.unix_name};
  return {.host = store.host, .port = store.port, .unix_name = {}};
}

}  // namespace

void NodeReturns::on_broken(NodeId id, scheduler::Incarnation incarnation, const std::string& why) {
  const auto* node = routes_.node(id);
  if (!node || node->incarnation != incarnation) return;
  if (!node->line->is_resumable() || node->leaves || !node->store || has_given_up_)
    return callbacks_.node_gone(id, incarnation, why);
  ask_for(id, *node, why);
}

void NodeReturns::ask_for(NodeId id, const Routes::Node& node, const std::string& why) {
  transport::ClientOptions client;
  client.self.role = wire::Role::HEAD;
  client.self.cluster = identity_.cluster();
  client.key = token_;
  const auto seconds = std::chrono::duration<double>(node_silence_).count();
  auto probe = std::make_shared<NodeProbe>(
      loop_, listener_of(*node.store), std::move(client),
      NodeProbe::Callbacks{
          .lives = [this,
                    line = fmt::format("node {} ({}): its connection has broken: {}; it has {:g} s "
                                       "to connect again, with its processes",
                                       id, node.name, why, seconds)] { callbacks_.log(line); },
          .gone = [this, id, incarnation = node.incarnation,
                   why] { callbacks_.node_gone(id, incarnation, why); }});
  probes_[id] = probe;
  probe->start();
}

std::string NodeReturns::why_not_resumed(wire::NodeResume::Reader resume) {
  const NodeId id{resume.getNode()};
  const scheduler::Incarnation incarnation{resume.getIncarnation()};
  if (incarnation.value() >> 32 != identity_.epoch()) {
    return fmt::format("it was started after node {} had joined the head before it", id);
  }
  const auto* node = routes_.node(id);
  if (!node || node->incarnation != incarnation || !node->line->is_resumable()) {
    return fmt::format("it has taken node {} for lost meanwhile, with all of its processes", id);
  }
  if (!transport::equal(node->secret, transport::bytes_of(resume.getSecret())))
    return fmt::format("this is not who joined as node {}", id);
  if (!node->line->is_resumable_from(resume.getReceived()))
    return fmt::format("node {} has had other messages than it was sent", id);
  return {};
}

void NodeReturns::on_resume(const transport::ConnectionPtr& connection,
                            wire::NodeResume::Reader resume) {
  const NodeId id{resume.getNode()};
  if (const auto why = why_not_resumed(resume); !why.empty()) {
    callbacks_.log(fmt::format("node {} connects again and is refused: {}", id, why));
    transport::Outgoing refusal;
    refusal.root().setShutdown(why);
    connection->send(refusal);
    return connection->finish();
  }
  auto& node = *routes_.node(id);
  transport::Outgoing answer;
  answer.root().setNodeResumed(node.line->received());
  connection->send(answer);
  node.line->resume(connection, resume.getReceived());
  // Once: a connection that breaks again at once is no sign of life.
  if (!std::exchange(node.returned, true)) node.heard = std::chrono::steady_clock::now();
  probes_.erase(id);
  callbacks_.log(fmt::format("node {} ({}) has connected again", id, node.name));
}

void NodeReturns::give_up() {
  has_given_up_ = true;
  std::vector<std::pair<NodeId, scheduler::Incarnation>> absent;
  for (const auto& [id, node] : routes_.nodes()) {
    if (!node.line->connection()) absent.emplace_back(id, node.incarnation);
  }
  for (const auto& [id, incarnation] : absent)
    callbacks_.node_gone(id, incarnation, "its connection has broken");
}

void NodeReturns::tick() {
  std::erase_if(probes_, [this](const auto& entry) {
    const auto* node = routes_.node(entry.first);
    return !node || node->line->connection();
  });
}

}  // namespace troupe::head
