#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "experiment/trial_json.hpp"
#include "text/json.hpp"

/// The journal of an experiment: JSON lines, the first one about the search, then one for each
/// event in their order.
namespace troupe::tune {

std::string journal_header(const ExperimentOptions& options, const Searcher& searcher,
                           const TrialScheduler& scheduler);
/// Of a journal that goes on from a snapshot after so many events of its run.
std::string header_after(const std::string& header, std::uint64_t events);
std::string to_line(const Event& event);
/// Throws std::invalid_argument, naming the line, where it is no event.
Event event_from(std::string_view line);

/// Where the run that wrote this journal was closed, or its end: what follows is how its gangs
/// ended. A run that goes on takes up what came before.
std::size_t end_of_open(std::string_view journal);

/// Throws std::invalid_argument, naming what differs, unless the journal's first line is this header,
/// whatever came before its events.
void check_header(std::string_view journal, const std::string& header);
/// How many events of its run came before a journal's first one.
std::uint64_t events_before(std::string_view journal);

/// Applies the events of a journal to an experiment that has the run's first `known` events already,
/// and calls `seen` with each one that it had not. A last line without its end, which a crash in the
/// middle of a write leaves, is left out. -> the number of bytes of whole lines. Throws
/// std::invalid_argument, with the line's number, for a line that is no event or that this experiment
/// decides otherwise, and where events between the known ones and the journal's are missing.
std::size_t apply_events(std::string_view journal, Experiment& experiment,
                         const Experiment::Observer& seen, std::uint64_t known);

/// check_header and apply_events of a journal that holds all of its run, to an experiment without
/// events.
std::size_t replay(std::string_view journal, Experiment& experiment,
                   const Experiment::Observer& seen = {});

}  // namespace troupe::tune
