#include "output/folder/params.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

constexpr auto* kFile = "params.json";
constexpr auto* kSpace = "space";
constexpr auto* kConfig = "config";
constexpr auto* kEarlierConfigs = "earlier_configs";
constexpr auto* kAttempts = "attempts";

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Empty where there is none, as in a run of a version that wrote none.
Json object_in(const Json& json, const char* name) {
  auto object = json.value(name, Json());
  return object.is_object() ? object : Json::object();
}

Configuration unsearched_in(const Json& json) {
  Configuration values;
  const auto config = object_in(json, kConfig);
  for (const auto& [name, value] : config.items()) {
    if (!value.is_primitive() || value.is_null()) continue;
    for (auto& field : configuration_from(Json{{name, value}})) values.push_back(std::move(field));
  }
  return values;
}

}  // namespace

RunParams::RunParams(Json search, const Configuration& unsearched) {
  search[kConfig] = to_json(unsearched);
  // A value is kept as the file has it, which has other signs for text that is no UTF-8: it compares
  // with one that was read.
  json_ = parse(text_of(search), "the parameters of a run");
}

RunParams RunParams::in(const std::filesystem::path& folder) {
  auto json = json_in(folder / kFile);
  return RunParams(json.is_object() ? std::move(json) : Json::object());
}

void RunParams::write(const std::filesystem::path& folder, Sync sync) const {
  replace_file(folder / kFile, text_of(json_), sync);
}

Json RunParams::space() const { return object_in(json_, kSpace); }
Configuration RunParams::unsearched() const { return unsearched_in(json_); }

std::vector<detail::EarlierConfig> RunParams::earlier_configs() const {
  std::vector<detail::EarlierConfig> all;
  const auto entries = json_.value(kEarlierConfigs, Json::array());
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

std::vector<std::string> RunParams::go_on_from(const RunParams& before,
                                               const std::vector<Trial>& trials) {
  std::vector<std::string> lines;
  auto changed = Json::object();
  const auto had = object_in(before.json_, kConfig);
  const auto has = object_in(json_, kConfig);
  for (const auto& [name, was] : had.items()) {
    const auto is = has.find(name);
    if (is != has.end() && *is == was) continue;
    changed[name] = was;
    lines.push_back(fmt::format(
        "field '{}' of .config was {} in this run until now, and {} in the attempts that begin now",
        name, dump(was),
        is == has.end() ? std::string("has no value that a file can have")
                        : fmt::format("is {}", dump(*is))));
  }
  auto configs = before.json_.value(kEarlierConfigs, Json());
  if (!configs.is_array()) configs = Json::array();
  if (!changed.empty()) {
    auto attempts = Json::array();
    for (const auto& trial : trials) attempts.push_back(trial.attempt);
    configs.push_back({{kAttempts, std::move(attempts)}, {kConfig, changed}});
  }
  if (!configs.empty()) json_[kEarlierConfigs] = std::move(configs);
  return lines;
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
