#pragma once

#include <string>

#include <troupe/tune/experiment.hpp>

#include "output/html/run_record.hpp"
#include "text/json.hpp"

namespace troupe::tune {

/// What the report draws, as its script reads it: the trials with their curves (thinned to
/// kMostPoints in all), fields, attempts, rungs, importances. See report.js.
/// `is_abandoned`: as for status_text().
Json report_data(const Experiment& experiment, const SearchSpace& space, const RunRecord& record,
                 const std::string& title, Seconds now, bool is_abandoned = false);

/// A run as one HTML page that needs no network and no other file: history, learning curves,
/// importances, rungs, parallel coordinates, slices, a timeline, populations, a table.
std::string html_report(const Experiment& experiment, const SearchSpace& space,
                        const RunRecord& record, const std::string& title, Seconds now,
                        bool is_abandoned = false);

}  // namespace troupe::tune
