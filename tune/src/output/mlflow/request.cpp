#include "output/mlflow/request.hpp"

#include <cctype>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "output/mlflow/mlflow_name.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace {

using Kind = MlflowRequest::Kind;

constexpr std::size_t kMostText = 500;  // bytes of a value, which any version of MLflow takes
constexpr auto* kApi = "/api/2.0/mlflow/";

/// Numbers that are not finite, as Protocol Buffers' JSON has them.
Json number_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

/// Cut where a character of UTF-8 ends.
std::string cut(std::string text) {
  if (text.size() <= kMostText) return text;
  auto size = kMostText;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  text.resize(size);
  return text;
}

Json pairs(const Texts& texts) {
  auto list = Json::array();
  for (const auto& [key, value] : texts) list.push_back({{"key", key}, {"value", cut(value)}});
  return list;
}

std::string escaped(std::string_view text) {
  std::string query;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
    query += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return query;
}

std::string api_path(std::string_view method) { return std::string(kApi) + std::string(method); }

}  // namespace

MlflowRequest to_find_experiment(const std::string& name) {
  return {.kind = Kind::FindExperiment,
          .path = api_path("experiments/get-by-name?experiment_name=") + escaped(name)};
}

MlflowRequest to_create_experiment(const std::string& name) {
  return {.kind = Kind::CreateExperiment,
          .path = api_path("experiments/create"),
          .body = dump({{"name", name}})};
}

MlflowRequest to_create_run(RunKey run, const std::string& experiment_id, const std::string& name,
                            std::int64_t start_ms, const Texts& tags) {
  return {.kind = Kind::CreateRun,
          .path = api_path("runs/create"),
          .body = dump({{"experiment_id", experiment_id},
                        {"run_name", name},
                        {"start_time", start_ms},
                        {"tags", pairs(tags)}}),
          .run = run};
}

MlflowRequest to_update_run(RunKey run, const std::string& id, const std::string& status,
                            std::int64_t end_ms) {
  Json body{{"run_id", id}, {"status", status}};
  if (status != "RUNNING") body["end_time"] = end_ms;
  return {.kind = Kind::Update,
          .path = api_path("runs/update"),
          .body = dump(body),
          .run = run,
          .status = status};
}

void address_batch(MlflowRequest& batch, const std::string& id) {
  auto metrics = Json::array();
  for (const auto& report : batch.reports) {
    for (const auto& metric : report.metrics) {
      metrics.push_back({{"key", mlflow_name(metric.name)},
                         {"value", number_of(metric.value)},
                         {"timestamp", report.time_ms},
                         {"step", report.step}});
    }
  }
  auto params = batch.params;
  for (auto& [name, value] : params) name = mlflow_name(name);
  batch.path = api_path("runs/log-batch");
  batch.body = dump({{"run_id", id},
                     {"metrics", std::move(metrics)},
                     {"params", pairs(params)},
                     {"tags", pairs(batch.tags)}});
}

std::set<EntityName> names_in(const MlflowRequest& request) {
  std::set<EntityName> names;
  for (const auto& tag : request.tags) names.insert({EntityName::Kind::Tag, tag.first});
  for (const auto& param : request.params) names.insert({EntityName::Kind::Param, param.first});
  for (const auto& report : request.reports) {
    for (const auto& metric : report.metrics) names.insert({EntityName::Kind::Metric, metric.name});
  }
  return names;
}

std::size_t values_in(const MlflowRequest& request) {
  std::size_t values = 0;
  for (const auto& report : request.reports) values += report.metrics.size();
  return values;
}

}  // namespace troupe::tune
