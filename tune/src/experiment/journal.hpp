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

/// Where the run that wrote this journal was closed, or its end: what follows is how its gangs
/// ended. A run that goes on takes up what came before.
std::size_t end_of_open(std::string_view journal);

/// Applies a journal's text to an experiment without events, and calls `seen` with each one. A last line without its end, which a
/// crash in the middle of a write leaves, is left out. -> the number of bytes of whole lines.
/// Throws std::invalid_argument, with the line's number, if the journal is of another search, or
/// has a line that is no event or that this experiment decides otherwise.
std::size_t replay(std::string_view journal, Experiment& experiment,
                   const Experiment::Observer& seen = {});

}  // namespace troupe::tune
