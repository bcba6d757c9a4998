#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <troupe/tune/experiment.hpp>

#include "output/html/metric_curves.hpp"
#include "output/html/run_record.hpp"
#include "text/json.hpp"

namespace troupe::tune {

/// Whether somebody runs the run that a report is of. One that nobody runs any more is abandoned where
/// it is not over, as for status_text().
enum class RunState : std::uint8_t { Over, UnderWay, Abandoned };

/// What a report says of itself.
struct PageState {
  RunState run = RunState::Over;
  std::chrono::system_clock::time_point written = {};
  /// Of the page that a run under way leaves for its readers: after so long at most there is another
  /// one. 0: this one stays.
  Seconds every{0};
};

/// metric_curves() of a run's reports, thinned as the curves of the searched metric are.
MetricCurves curves_of_reports(const std::filesystem::path& folder, const Experiment& experiment);

/// What the report draws, as its script reads it: the trials with their curves (thinned to
/// kMostPoints in all), fields, attempts, rungs, importances. See report.js. Of a run that is under way
/// there are no importances, which take long. `metrics`: beside the searched one.
Json report_data(const Experiment& experiment, const SearchSpace& space, const RunRecord& record,
                 const std::string& title, Seconds now, const PageState& page = {},
                 const MetricCurves& metrics = {});

/// A run as one HTML page that needs no network and no other file: history, learning curves,
/// importances, rungs, parallel coordinates, slices, a timeline, populations, a table. The page of a run
/// that is under way loads itself anew.
std::string html_report(const Experiment& experiment, const SearchSpace& space,
                        const RunRecord& record, const std::string& title, Seconds now,
                        const PageState& page = {}, const MetricCurves& metrics = {});

}  // namespace troupe::tune
