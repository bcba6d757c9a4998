#pragma once

#include <vector>

#include <troupe/tune/decision.hpp>
#include <troupe/tune/lineage.hpp>

#include "text/json.hpp"

/// Decisions as the journal and the states of schedulers hold them.
namespace troupe::tune {

Json to_json(const Exploit& exploit);
/// {"decision": "stop", "reason": "...", ...}: what is empty is left out. Stands beside the other
/// keys of an event.
Json to_json(const Decision& decision);
Json to_json(const Takeover& takeover);
/// [{"after_t", "trial", "config"}, ...]
Json to_json(const std::vector<Segment>& schedule);

/// These throw std::invalid_argument or Json::exception where the text is something else.
Exploit exploit_from(const Json& json);
Decision decision_from(const Json& json);

}  // namespace troupe::tune
