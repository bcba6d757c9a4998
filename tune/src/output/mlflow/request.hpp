#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/experiment.hpp>

namespace troupe::tune {

/// A run in MLflow: of a trial; none: of the search, the parent of all others.
using RunKey = std::optional<TrialId>;
/// Parameters and tags, as MLflow has them.
using Texts = std::vector<std::pair<std::string, std::string>>;

/// What a trial reported at one time. A value.
struct MlflowReport {
  std::uint64_t number = 0;  ///< among those of its run, ascending
  std::int64_t step = 0;
  std::int64_t time_ms = 0;
  Metrics metrics = {};
  std::uint64_t age = 0;  ///< the lowest came first
};

/// What an MLflow server is told at once. A value.
struct MlflowRequest {
  enum class Kind : std::uint8_t { FindExperiment, CreateExperiment, CreateRun, Log, Update };
  Kind kind = Kind::Log;
  std::string path = {};
  std::string body = {};  ///< empty: a GET
  RunKey run = {};
  std::vector<MlflowReport> reports = {};  ///< in it, as are these
  Texts params = {};
  Texts tags = {};
  std::string status = {};
};

/// The name of what MLflow has for a run: a server refuses one name and takes others.
struct EntityName {
  enum class Kind : std::uint8_t { Tag, Param, Metric };
  Kind kind = Kind::Metric;
  std::string name = {};
  friend auto operator<=>(const EntityName&, const EntityName&) = default;
};

/// Requests of MLflow's REST API 2.0.
MlflowRequest to_find_experiment(const std::string& name);
MlflowRequest to_create_experiment(const std::string& name);
MlflowRequest to_create_run(RunKey run, const std::string& experiment_id, const std::string& name,
                            std::int64_t start_ms, const Texts& tags);
MlflowRequest to_update_run(RunKey run, const std::string& id, const std::string& status,
                            std::int64_t end_ms);
/// Makes path and body of a batch: what it tells, of the run with this id.
void address_batch(MlflowRequest& batch, const std::string& id);

std::set<EntityName> names_in(const MlflowRequest& request);
/// How many values of metrics it tells.
std::size_t values_in(const MlflowRequest& request);

}  // namespace troupe::tune
