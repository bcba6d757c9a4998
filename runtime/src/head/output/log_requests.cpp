#include "head/output/log_requests.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/algorithm/hex.hpp>

#include "os/ticks.hpp"
#include "store/catalog/catalog.hpp"
#include "store/codec.hpp"

namespace troupe::head {

using nlohmann::json;

namespace {

/// As the node sent it, which may be newer than this head.
const char* state_of(wire::HeldObject::Reader object) {
  using enum store::ObjectView::State;
  switch (static_cast<store::ObjectView::State>(object.getState())) {
    case Waiting:
      return "waits for memory";
    case Writing:
      return "being written";
    case Memory:
      return object.getPinnedBy().size() > 0 ? "pinned" : "in memory";
    case Disk:
      return "on disk";
    case Freed:
      return "freed";
  }
  return "unknown";
}

}  // namespace

std::uint64_t LogRequests::most_objects_of_each(std::uint64_t most, std::size_t nodes) {
  return std::min<std::uint64_t>(most, std::max<std::size_t>(kMostObjects / nodes, 1));
}

void LogRequests::ask(const Wanted& wanted, Answer answer, Clock::time_point now) {
  if (waiting_.size() >= kMostWaiting) {
    return answer(
        {{"error", "the head asks too much of its nodes at once: try again in a moment"}});
  }
  const auto id = ++last_;
  auto& waiting = waiting_[id];
  waiting.answer = std::move(answer);
  waiting.until = now + wanted.patience;
  waiting.over = is_over(wanted);
  waiting.asked = os::unix_ns();
  if (wanted.objects) waiting.objects = json::array();
  for (const auto& [node_id, node] : routes_.nodes()) {
    const bool has_it = !node.logs.empty() || wanted.calls || wanted.objects;
    const bool is_wanted = wanted.nodes.empty() || wanted.nodes.contains(node_id);
    if (has_it && is_wanted) waiting.nodes.emplace(node_id, node.name);
  }
  for (const auto& [node_id, name] : waiting.nodes) {
    transport::Outgoing message;
    auto request = message.root().initLogRequest();
    request.setId(id);
    request.setJob(wanted.job.value());
    request.setProcess(wanted.process.value());
    request.setMost(wanted.objects ? most_objects_of_each(wanted.most, waiting.nodes.size())
                                   : wanted.most);
    request.setFollows(wanted.follows);
    request.setCalls(wanted.calls);
    request.setAfter(wanted.after.value());
    request.setRunning(wanted.running);
    request.setObjects(wanted.objects);
    auto places = request.initKnown(static_cast<unsigned>(wanted.known.size()));
    unsigned i = 0;
    for (const auto& [process, offset] : wanted.known) {
      places[i].setProcess(process.value());
      places[i++].setOffset(offset);
    }
    routes_.node(node_id)->line->send(message);
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
  if (found->second.objects.is_array()) note_objects(found->second, node_id, node->name, reply);
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

void LogRequests::note_objects(Waiting& waiting, NodeId node, const std::string& name,
                               wire::LogReply::Reader reply) {
  waiting.objects_in_all += reply.getObjectsInAll();
  for (const auto object : reply.getObjects()) {
    json pinned_by = json::array();
    for (const auto process : object.getPinnedBy()) pinned_by.push_back(process);
    waiting.objects.push_back({{"node", node.value()},
                               {"node_name", name},
                               {"object", store::to_string(store::read_object(object.getObject()))},
                               {"job", object.getJob()},
                               {"owner", object.getOwner()},
                               {"bytes", object.getBytes()},
                               {"state", state_of(object)},
                               {"copy", object.getIsCopy()},
                               {"pinned_by", std::move(pinned_by)}});
  }
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
  settle_where([node](Waiting& waiting) {
    auto found = waiting.nodes.extract(node);
    if (found.empty()) return false;
    waiting.lost.insert(std::move(found));
    return waiting.nodes.empty();
  });
}

void LogRequests::tick(Clock::time_point now) {
  const auto stood = stall_detector_.came(now);
  stall_detector_.expect(now + kTick);
  settle_where([&](Waiting& waiting) {
    waiting.until += stood;
    return waiting.until <= now || std::ranges::none_of(waiting.nodes, [this](const auto& node) {
             return routes_.node(node.first) != nullptr;
           });
  });
}

void LogRequests::settle_where(const std::function<bool(Waiting&)>& over) {
  std::vector<std::uint64_t> done;
  for (auto& [id, waiting] : waiting_) {
    if (over(waiting)) done.push_back(id);
  }
  for (const auto id : done) settle(id);
}

std::string LogRequests::name_of(NodeId node, const std::string& name) const {
  const bool is_doubtful = std::ranges::any_of(routes_.nodes(), [&](const auto& other) {
    return other.first != node && other.second.name == name;
  });
  return is_doubtful ? fmt::format("{} (node {})", name, node.value()) : name;
}

void LogRequests::settle(std::uint64_t id) {
  auto found = waiting_.extract(id);
  if (found.empty()) return;
  auto& waiting = found.mapped();
  json silent = json::array(), silent_nodes = json::array();
  for (const auto* nodes : {&waiting.lost, &waiting.nodes}) {
    for (const auto& [node_id, name] : *nodes) {
      silent.push_back(name_of(node_id, name));
      silent_nodes.push_back(node_id.value());
    }
  }
  json answer{{"parts", std::move(waiting.parts)},
              {"silent", std::move(silent)},
              {"silent_nodes", std::move(silent_nodes)},
              {"clocks", std::move(waiting.clocks)},
              {"now_unix_ns", os::unix_ns()},
              {"over", waiting.over}};
  if (waiting.objects.is_array()) {
    answer["objects"] = std::move(waiting.objects);
    answer["objects_in_all"] = waiting.objects_in_all;
  }
  waiting.answer(answer);
}

}  // namespace troupe::head
