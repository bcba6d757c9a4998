#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "text/json.hpp"

/// A run as its files tell it, for who has neither the program nor the sweep's file that began it.
namespace troupe::tune {

/// An experiment that decides as a journal says that its run did.
struct RecordedExperiment {
  std::unique_ptr<Experiment> experiment = {};
  /// To be told of each event before the experiment applies it.
  std::function<void(const Event&)> coming = {};
  /// How many trials the run may have, as the journal's first line says; 0: nobody knows. May be
  /// changed at any time.
  std::shared_ptr<std::uint64_t> trials = {};
};

/// `of_programs`: as in ExperimentOptions. `rungs`: as the run's summary has them. Throws std::invalid_argument where the journal's first
/// line is of a newer Troupe, or none.
RecordedExperiment recorded_experiment(std::string_view journal, bool of_programs,
                                       std::vector<RungSummary> rungs);

/// The searched fields, from what `params.json` says of the space. A domain that is no range of
/// numbers has the values that trials have had.
SearchSpace recorded_space(const Json& space, const std::vector<Trial>& trials);

}  // namespace troupe::tune
