#include "text/json.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "text/names.hpp"

namespace troupe::tune {
namespace {

[[noreturn]] void refuse(const Json& json, std::string_view expected) {
  throw std::invalid_argument(fmt::format("{} is not {}", dump(json).substr(0, 80), expected));
}

}  // namespace

Json to_json(double number) {
  if (std::isfinite(number)) return number;
  return to_string(number);
}

Json to_json(const Scalar& scalar) {
  return std::visit([](const auto& value) { return Json(value); }, scalar.value());
}

Json to_json(const Configuration& configuration) {
  auto json = Json::object();
  for (const auto& [name, value] : configuration) json[name] = to_json(value);
  return json;
}

Json to_json(const Metrics& metrics) {
  auto json = Json::object();
  for (const auto& metric : metrics) json[name_in_utf8(metric.name)] = to_json(metric.value);
  return json;
}

Json to_json(const SearchSpace& space) {
  auto json = Json::object();
  for (const auto& dimension : space) json[dimension.name] = to_string(dimension.domain);
  return json;
}

Json to_json(const std::vector<Objective>& objectives) {
  auto json = Json::array();
  for (const auto& [metric, mode] : objectives)
    json.push_back(
        Json{{"metric", name_in_utf8(metric)}, {"mode", mode == Mode::Max ? "max" : "min"}});
  return json;
}

Json to_json(const std::vector<Constraint>& constraints) {
  auto json = Json::array();
  for (const auto& [metric, bound, limit] : constraints)
    json.push_back(Json{{"metric", name_in_utf8(metric)},
                        {"bound", bound == Bound::AtMost ? "at most" : "at least"},
                        {"limit", limit}});
  return json;
}

double number_from(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  refuse(json, "a number");
}

Scalar scalar_from(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  refuse(json, "a number, a truth value or text");
}

Configuration configuration_from(const Json& json) {
  if (!json.is_object()) refuse(json, "a configuration");
  Configuration configuration;
  for (const auto& [name, value] : json.items())
    configuration.emplace_back(name, scalar_from(value));
  return configuration;
}

Metrics metrics_from(const Json& json) {
  if (!json.is_object()) refuse(json, "a report's metrics");
  Metrics metrics;
  for (const auto& [name, value] : json.items())
    metrics.emplace_back("", number_from(value)).name = name_from_utf8(name);
  return metrics;
}

Json parse(std::string_view text, std::string_view what) {
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    throw std::invalid_argument(fmt::format("not {}: '{}'", what, text.substr(0, 80)));
  return json;
}

Json json_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return Json::parse(in, nullptr, /*allow_exceptions=*/false);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe::tune
