#include "searchers/trial_end_json.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace troupe::tune {

Json to_json(const TrialEnd& end) {
  const auto number = [](const std::optional<double>& value) {
    return value ? tune::to_json(*value) : Json();
  };
  Json json{{"best", number(end.best)},
            {"last", number(end.last)},
            {"t", end.t},
            {"errored", end.errored},
            {"stopped", end.stopped}};
  for (const double value : end.values) json["values"].push_back(tune::to_json(value));
  if (end.violation != 0) json["violation"] = tune::to_json(end.violation);
  return json;
}

TrialEnd trial_end_from(const Json& json) {
  const auto number = [](const Json& value) {
    return value.is_null() ? std::nullopt : std::optional(number_from(value));
  };
  std::vector<double> values;
  for (const auto& value : json.value("values", Json::array()))
    values.push_back(number_from(value));
  return {.best = number(json.at("best")),
          .last = number(json.at("last")),
          .t = json.at("t").get<std::int64_t>(),
          .errored = json.at("errored").get<bool>(),
          .stopped = json.at("stopped").get<bool>(),
          .values = std::move(values),
          .violation = json.contains("violation") ? number_from(json.at("violation")) : 0};
}

}  // namespace troupe::tune
