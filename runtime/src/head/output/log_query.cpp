#include "head/output/log_query.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "config/name.hpp"

namespace troupe::head {
namespace {

using nlohmann::json;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

std::uint64_t require_number(const char* what, const std::string& text) {
  if (const auto found = number(text)) return *found;
  throw std::invalid_argument(fmt::format("'{}' is no number of a {}: `troupe logs` shows them",
                                          config::printable(text), what));
}

std::optional<std::string> text_in(const json& request, const char* name) {
  const auto found = request.find(name);
  if (found == request.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

/// 0: it is not said.
std::uint64_t number_in(const json& request, const char* name) {
  const auto found = request.find(name);
  if (found == request.end()) return 0;
  if (!found->is_number_unsigned())
    throw std::invalid_argument(fmt::format("'{}' is no number", name));
  return found->get<std::uint64_t>();
}

/// None: it is not said.
std::set<NodeId> nodes_in(const json& request) {
  std::set<NodeId> nodes;
  for (const auto& node : request.value("nodes", json::array())) {
    if (!node.is_number_unsigned())
      throw std::invalid_argument(fmt::format("'{}' is no number of a node", node.dump()));
    nodes.insert(NodeId(node.get<std::uint32_t>()));
  }
  return nodes;
}

/// By its number, also of one that has ended; by its name while it is there.
ProcessId process_of_actor(const std::string& text, const Control& control) {
  const auto by_name = control.process_of_actor(text);
  if (by_name) return *by_name;
  const auto id = number(text);
  if (const auto by_id = id ? control.process_of_actor(scheduler::ActorId(*id)) : std::nullopt)
    return *by_id;
  throw std::invalid_argument(fmt::format(
      "there is no actor '{}' now: `troupe logs` shows those that are there. The actors "
      "of a job that has ended are not known by their names any more; `troupe logs job "
      "N` has what they printed",
      config::printable(text)));
}

}  // namespace

LogRequests::Wanted read_timeline_query(const json& request) {
  LogRequests::Wanted wanted;
  wanted.calls = true;
  wanted.job = JobId(number_in(request, "job"));
  wanted.after = ProcessId(number_in(request, "after"));
  wanted.nodes = nodes_in(request);
  wanted.most = number_in(request, "most");
  return wanted;
}

LogRequests::Wanted read_running_query(const json& request) {
  constexpr std::uint64_t kMostRunningBytes = 4'000'000;  // of each node: ten thousand calls
  LogRequests::Wanted wanted;
  wanted.calls = true;
  wanted.running = true;
  const auto most = static_cast<std::uint64_t>(LogRequests::kPatience.count());
  if (const auto seconds = number_in(request, "seconds"); seconds > 0)
    wanted.patience = std::chrono::seconds(std::min(seconds, most));
  wanted.nodes = nodes_in(request);
  wanted.most = kMostRunningBytes;
  return wanted;
}

LogRequests::Wanted read_objects_query(const json& request) {
  LogRequests::Wanted wanted;
  wanted.objects = true;
  wanted.nodes = nodes_in(request);
  wanted.most = number_in(request, "most");
  return wanted;
}

LogRequests::Wanted read_log_query(const json& request, const Control& control) {
  LogRequests::Wanted wanted;
  if (const auto job = text_in(request, "job")) {
    wanted.job = JobId(require_number("job", *job));
  } else if (const auto actor = text_in(request, "actor")) {
    wanted.process = process_of_actor(*actor, control);
  } else if (const auto process = text_in(request, "process")) {
    wanted.process = ProcessId(require_number("process", *process));
  } else if (request.value("all", json()) == true) {
    return wanted;  // no text: which logs there are, and how long they are
  } else {
    throw std::invalid_argument("logs are of a job, an actor or a process");
  }
  if (const auto most = request.find("most"); most != request.end() && most->is_number_unsigned())
    wanted.most = most->get<std::uint64_t>();
  if (const auto follows = request.find("follows"); follows != request.end())
    wanted.follows = follows->is_boolean() && follows->get<bool>();
  const auto known = request.find("known");
  if (known == request.end() || !known->is_object()) return wanted;
  for (const auto& [process, offset] : known->items()) {
    if (offset.is_number_unsigned())
      wanted.known[ProcessId(require_number("process", process))] = offset.get<std::uint64_t>();
  }
  return wanted;
}

}  // namespace troupe::head
