#include "head/output/log_requests.hpp"

#include <string>
#include <utility>
#include <vector>

#include <boost/algorithm/hex.hpp>

#include "os/ticks.hpp"

namespace troupe::head {

using nlohmann::json;

void LogRequests::ask(const Wanted& wanted, Answer answer) {
  if (waiting_.size() >= kMostWaiting) {
    return answer(
        {{"error", "the head is asked for too many logs at once: try again in a moment"}});
  }
  const auto id = ++last_;
  auto& waiting = waiting_[id];
  waiting.answer = std::move(answer);
  waiting.until = Clock::now() + kPatience;
  waiting.over = is_over(wanted);
  waiting.asked = os::unix_ns();
  for (auto& [node_id, node] : routes_.nodes()) {
    if (node.logs.empty() && !wanted.calls) continue;
    if (wanted.node != NodeId() && wanted.node != node_id) continue;
    waiting.nodes.insert(node_id);
    transport::Outgoing message;
    auto request = message.root().initLogRequest();
    request.setId(id);
    request.setJob(wanted.job.value());
    request.setProcess(wanted.process.value());
    request.setMost(wanted.most);
    request.setFollows(wanted.follows);
    request.setCalls(wanted.calls);
    request.setAfter(wanted.after.value());
    auto places = request.initKnown(static_cast<unsigned>(wanted.known.size()));
    unsigned i = 0;
    for (const auto& [process, offset] : wanted.known) {
      places[i].setProcess(process.value());
      places[i++].setOffset(offset);
    }
    node.connection->send(message);
  }
  if (waiting.nodes.empty()) settle(id);
}

bool LogRequests::is_over(const Wanted& wanted) const {
  if (wanted.process.value() != 0) return routes_.process(wanted.process) == nullptr;
  return !routes_.jobs().contains(wanted.job) && !routes_.has_process_of(wanted.job);
}

void LogRequests::on_reply(NodeId node_id, wire::LogReply::Reader reply) {
  const auto found = waiting_.find(reply.getId());
  const auto* node = routes_.node(node_id);
  if (found == waiting_.end() || !node || found->second.nodes.erase(node_id) == 0) return;
  if (reply.getClock() != 0) note_clock(found->second, node_id, node->name, reply.getClock());
  for (const auto part : reply.getParts()) {
    const auto text = part.getText();
    found->second.parts.push_back(
        {{"node", node_id.value()},
         {"node_name", node->name},
         {"job", part.getJob()},
         {"process", part.getProcess()},
         {"file", part.getFile().cStr()},
         {"text", boost::algorithm::hex_lower(
                      std::string(reinterpret_cast<const char*>(text.begin()), text.size()))},
         {"next", part.getNext()},
         {"more", part.getMore()}});
  }
  if (found->second.nodes.empty()) settle(reply.getId());
}

void LogRequests::note_clock(Waiting& waiting, NodeId node, const std::string& name,
                             std::uint64_t clock) {
  const auto now = os::unix_ns();
  const auto half = static_cast<std::int64_t>(now - waiting.asked) / 2;
  waiting.clocks.push_back({{"node", node.value()},
                            {"node_name", name},
                            {"ahead_ns", static_cast<std::int64_t>(clock - waiting.asked) - half},
                            {"error_ns", half}});
}

void LogRequests::node_gone(NodeId node) {
  std::vector<std::uint64_t> done;
  for (auto& [id, waiting] : waiting_) {
    if (waiting.nodes.erase(node) > 0 && waiting.nodes.empty()) done.push_back(id);
  }
  for (const auto id : done) settle(id);
}

void LogRequests::tick() {
  const auto now = Clock::now();
  std::vector<std::uint64_t> overdue;
  for (const auto& [id, waiting] : waiting_) {
    if (waiting.until <= now) overdue.push_back(id);
  }
  for (const auto id : overdue) settle(id);
}

void LogRequests::settle(std::uint64_t id) {
  auto found = waiting_.extract(id);
  if (found.empty()) return;
  auto& waiting = found.mapped();
  auto silent = json::array();
  for (const auto node_id : waiting.nodes) {
    if (const auto* node = routes_.node(node_id)) silent.push_back(node->name);
  }
  waiting.answer({{"parts", std::move(waiting.parts)},
                  {"silent", std::move(silent)},
                  {"clocks", std::move(waiting.clocks)},
                  {"now_unix_ns", os::unix_ns()},
                  {"over", waiting.over}});
}

}  // namespace troupe::head
