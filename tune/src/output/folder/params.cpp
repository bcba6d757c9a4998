#include "output/folder/params.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

constexpr auto* kConfig = "config";
constexpr auto* kEarlierConfigs = "earlier_configs";
constexpr auto* kAttempts = "attempts";

Json config_in(const Json& params) {
  auto config = params.value(kConfig, Json());  // earlier versions wrote none
  return config.is_object() ? config : Json::object();
}

}  // namespace

void write_params(const std::filesystem::path& folder, const Json& params, Sync sync) {
  replace_file(folder / "params.json",
               params.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", sync);
}

Json read_params(const std::filesystem::path& folder) {
  auto params = json_in(folder / "params.json");
  return params.is_object() ? params : Json::object();
}

Configuration unsearched_in(const Json& params) {
  Configuration values;
  const auto config = config_in(params);
  for (const auto& [name, value] : config.items()) {
    if (!value.is_primitive() || value.is_null()) continue;
    for (auto& field : configuration_from(Json{{name, value}})) values.push_back(std::move(field));
  }
  return values;
}

std::vector<detail::EarlierConfig> earlier_configs_in(const Json& params) {
  std::vector<detail::EarlierConfig> all;
  const auto entries = params.value(kEarlierConfigs, Json::array());
  for (const auto& each : entries) {
    if (!each.is_object()) continue;
    detail::EarlierConfig earlier{.attempts = {}, .unsearched = unsearched_in(each)};
    const auto all_attempts = each.value(kAttempts, Json::array());
    for (const auto& attempts : all_attempts)
      earlier.attempts.push_back(attempts.is_number_integer() ? attempts.get<int>() : -1);
    all.push_back(std::move(earlier));
  }
  return all;
}

std::vector<std::string> change_config(Json& params, const Json& now,
                                       const std::vector<Trial>& trials) {
  std::vector<std::string> lines;
  auto changed = Json::object();
  const auto before = config_in(params);
  for (const auto& [name, was] : before.items()) {
    const auto is = now.find(name);
    if (is != now.end() && *is == was) continue;
    changed[name] = was;
    lines.push_back(fmt::format(
        "field '{}' of .config was {} in this run until now, and {} in the attempts that begin now",
        name, dump(was),
        is == now.end() ? std::string("has no value that a file can have")
                        : fmt::format("is {}", dump(*is))));
  }
  if (changed.empty()) return lines;
  auto attempts = Json::array();
  for (const auto& trial : trials) attempts.push_back(trial.attempt);
  if (!params.value(kEarlierConfigs, Json()).is_array()) params[kEarlierConfigs] = Json::array();
  params[kEarlierConfigs].push_back({{kAttempts, std::move(attempts)}, {kConfig, changed}});
  params[kConfig] = now;
  return lines;
}

void keep_earlier_configs(Json& params, const Json& from) {
  if (from.contains(kEarlierConfigs)) params[kEarlierConfigs] = from.at(kEarlierConfigs);
}

namespace detail {

std::size_t config_of_attempt(const std::vector<EarlierConfig>& earlier, const Trial& trial) {
  const auto had = std::ranges::find_if(earlier, [&](const EarlierConfig& each) {
    return trial.id < each.attempts.size() && trial.attempt <= each.attempts[trial.id];
  });
  return static_cast<std::size_t>(had - earlier.begin());
}

}  // namespace detail
}  // namespace troupe::tune
