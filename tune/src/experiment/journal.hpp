#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "text/json.hpp"

/// The journal of an experiment: JSON lines, the first one about the search, then one for each
/// event in their order.
namespace troupe::tune {

Json to_json(const Trial& trial);

std::string journal_header(const ExperimentOptions& options, const Searcher& searcher,
                           const TrialScheduler& scheduler);
std::string to_line(const Event& event);
/// Throws std::invalid_argument, naming the line, where it is no event.
Event event_from(std::string_view line);

/// Applies a journal's text to an experiment without events. A last line without its end, which a
/// crash in the middle of a write leaves, is left out. -> the number of bytes of whole lines.
/// Throws std::invalid_argument, with the line's number, if the journal is of another search, or
/// has a line that is no event or that this experiment decides otherwise.
std::size_t replay(std::string_view journal, Experiment& experiment);

}  // namespace troupe::tune
