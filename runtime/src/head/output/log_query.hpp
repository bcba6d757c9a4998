#pragma once

#include <nlohmann/json.hpp>

#include "head/control.hpp"
#include "head/output/log_requests.hpp"

namespace troupe::head {

/// What `troupe logs` asks for: {"job" | "actor" | "process": "ID or an actor's name", "known":
/// {process: offset}, "most": bytes}, or {"all": true}, which logs there are. Throws
/// std::invalid_argument, with a text for people, where there is no such thing.
LogRequests::Wanted read_log_query(const nlohmann::json& request, const Control& control);

/// What `troupe timeline` asks for: {"job": N, "nodes": [N], "after": the number of a process, "most":
/// bytes}, each of which may be missing: all nodes are asked where none is named. Throws as
/// read_log_query.
LogRequests::Wanted read_timeline_query(const nlohmann::json& request);

/// What `troupe list tasks` and `troupe status` ask for: {"nodes": [N], "seconds": how long they are
/// waited for, kPatience at most}, the calls that are under way there. Throws as read_log_query.
LogRequests::Wanted read_running_query(const nlohmann::json& request);

/// What `troupe list objects` asks for: {"most": how many of each node, "nodes": [N]}. Throws as
/// read_log_query.
LogRequests::Wanted read_objects_query(const nlohmann::json& request);

}  // namespace troupe::head
