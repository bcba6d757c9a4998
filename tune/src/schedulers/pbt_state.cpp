#include <stdexcept>

#include <fmt/format.h>

#include <troupe/tune/schedulers/pbt.hpp>

#include "experiment/decision_json.hpp"
#include "schedulers/explorer.hpp"
#include "schedulers/saved_state.hpp"
#include "text/json.hpp"

// What Pbt knows, as JSON.
namespace troupe::tune {

std::string Pbt::save() const {
  auto members = Json::array();
  for (const auto& [trial, member] : members_) {
    members.push_back({{"trial", trial},
                       {"judged_t", member.judged_t},
                       {"before_takeover", member.before_takeover},
                       {"noted_t", member.noted_t},
                       {"value", member.value ? to_json(*member.value) : Json()},
                       {"config", to_json(member.config)},
                       {"checkpoint", member.checkpoint},
                       {"checkpoint_t", member.checkpoint_t},
                       {"takeovers", member.takeovers},
                       {"pausing", member.pausing},
                       {"arrived", member.arrived},
                       {"failed", member.failed},
                       {"due", member.due ? to_json(*member.due) : Json()}});
  }
  Json json{{"scheduler", explorer_->name()},
            {"interval", options_.interval},
            {"burn_in", options_.burn_in},
            {"max_t", options_.max_t},
            {"quantile", options_.quantile},
            {"resample", options_.resample},
            {"factors", options_.factors},
            {"synchronous", options_.synchronous},
            {"mutate", to_json(options_.mutate)},
            {"metric", objective_.metric},
            {"mode", objective_.mode == Mode::Max ? "max" : "min"},
            {"seed", seed_},
            {"sync_t", sync_t_},
            {"draws", draws_},
            {"told_checkpoint_is_missing", told_checkpoint_is_missing_},
            {"gone", gone_},
            {"members", members}};
  if (auto explorer = explorer_->identity(); !explorer.is_null()) {
    json["explorer"] = std::move(explorer);
    json["explored"] = explorer_->save();
  }
  return dump(json);
}

void Pbt::load(std::string_view saved) {
  try {
    take_up(saved);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(
        fmt::format("not a state of {}: {}", explorer_->name(), broken.what()));
  }
}

void Pbt::take_up(std::string_view saved) {
  const auto json = parse(saved, "a scheduler's state");
  const auto own = parse(save(), "a scheduler's state");
  check_same_scheduler(json, own,
                       {"scheduler", "interval", "burn_in", "max_t", "quantile", "resample",
                        "factors", "synchronous", "mutate", "metric", "mode", "seed"});
  const bool has_learned = own.contains("explorer");
  if (has_learned) check_same_scheduler(json, own, {"explorer"});
  std::map<TrialId, Member> members;
  for (const auto& each : json.at("members")) {
    auto& member = members[each.at("trial").get<TrialId>()];
    member.judged_t = each.at("judged_t").get<std::int64_t>();
    member.before_takeover = each.at("before_takeover").get<std::int64_t>();
    member.noted_t = each.at("noted_t").get<std::int64_t>();
    if (!each.at("value").is_null()) member.value = number_from(each.at("value"));
    member.config = configuration_from(each.at("config"));
    member.checkpoint = each.at("checkpoint").get<std::string>();
    member.checkpoint_t = each.at("checkpoint_t").get<std::int64_t>();
    member.takeovers = each.at("takeovers").get<std::size_t>();
    member.pausing = each.at("pausing").get<bool>();
    member.arrived = each.at("arrived").get<bool>();
    member.failed = each.at("failed").get<bool>();
    if (!each.at("due").is_null()) member.due = exploit_from(each.at("due"));
  }
  const auto sync_t = json.at("sync_t").get<std::int64_t>();
  const auto draws = json.at("draws").get<std::uint64_t>();
  const auto told = json.at("told_checkpoint_is_missing").get<bool>();
  auto gone = json.at("gone").get<std::set<std::string>>();
  if (has_learned) explorer_->load(json.at("explored"));
  sync_t_ = sync_t;
  draws_ = draws;
  told_checkpoint_is_missing_ = told;
  gone_ = std::move(gone);
  members_ = std::move(members);
}

}  // namespace troupe::tune
