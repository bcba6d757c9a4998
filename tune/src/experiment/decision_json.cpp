#include "experiment/decision_json.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::tune {

Json to_json(const Exploit& exploit) {
  Json json{{"donor", exploit.donor},
            {"checkpoint", exploit.checkpoint},
            {"checkpoint_t", exploit.checkpoint_t},
            {"donor_takeovers", exploit.donor_takeovers},
            {"config", to_json(exploit.config)}};
  if (exploit.in_turn) json["in_turn"] = true;
  if (!exploit.why.empty()) json["reason"] = exploit.why;
  return json;
}

Json to_json(const Decision& decision) {
  Json json{{"decision", name_of(decision)}};
  if (const auto* exploit = std::get_if<Exploit>(&decision)) {
    json["exploit"] = to_json(*exploit);
    return json;
  }
  if (!why_of(decision).empty()) json["reason"] = why_of(decision);
  if (const auto rung = rung_of(decision)) json["rung"] = *rung;
  if (!notice_of(decision).empty()) json["notice"] = notice_of(decision);
  return json;
}

Json to_json(const Takeover& takeover) {
  return {{"t", takeover.t},
          {"from", takeover.donor},
          {"from_t", takeover.checkpoint_t},
          {"from_takeovers", takeover.donor_takeovers},
          {"checkpoint", takeover.checkpoint},
          {"own", to_json(takeover.before)},
          {"old", to_json(takeover.donor_config)},
          {"new", to_json(takeover.after)},
          {"reason", takeover.why}};
}

Exploit exploit_from(const Json& json) {
  return {.donor = json.at("donor").get<TrialId>(),
          .checkpoint = json.at("checkpoint").get<std::string>(),
          .checkpoint_t = json.at("checkpoint_t").get<std::int64_t>(),
          .donor_takeovers = json.at("donor_takeovers").get<std::size_t>(),
          .config = configuration_from(json.at("config")),
          .in_turn = json.value("in_turn", false),
          .why = json.value("reason", "")};
}

Decision decision_from(const Json& json) {
  const auto name = json.at("decision").get<std::string>();
  const auto why = json.value("reason", "");
  const auto rung =
      json.contains("rung") ? std::optional(json.at("rung").get<int>()) : std::nullopt;
  if (name == "continue") return GoOn{why, rung, json.value("notice", "")};
  if (name == "stop") return Stop{why, rung};
  if (name == "finish") return Finish{why};
  if (name == "pause") return Pause{why, rung, json.value("notice", "")};
  if (name == "exploit") return exploit_from(json.at("exploit"));
  throw std::invalid_argument(fmt::format("'{}' is no decision", name));
}

Json to_json(const std::vector<Segment>& schedule) {
  auto json = Json::array();
  for (const auto& [after_t, trial, config] : schedule) {
    json.push_back({{"after_t", after_t}, {"trial", trial}, {"config", to_json(config)}});
  }
  return json;
}

}  // namespace troupe::tune
