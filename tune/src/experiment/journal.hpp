#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "experiment/journal_lines.hpp"
#include "experiment/trial_json.hpp"
#include "text/json.hpp"

/// The journal of an experiment: lines (journal_lines.hpp), the first one about the search, then one
/// for each event in their order.
namespace troupe::tune {

/// What the first line of the experiment's journal says of its search.
std::string journal_header(const Experiment& experiment);
/// What a journal's line says of an event.
std::string to_line(const Event& event);
/// Throws std::invalid_argument, naming the line, where it is no event.
Event event_from(std::string_view line);

/// [["node-1", 0], ...].
Json to_json(const std::vector<Place>& places);
/// Throws Json::exception where it is something else.
std::vector<Place> places_from(const Json& json);

/// Where the run that wrote this journal was closed, or its end: what follows is how its gangs
/// ended. A run that goes on takes up what came before.
std::size_t end_of_open(std::string_view journal);

/// Throws std::invalid_argument, naming what differs, unless the journal's first line is this header,
/// whatever came before its events, and as first_line_of(). A journal without a whole line is of any
/// search.
void check_header(std::string_view journal, const std::string& header);
/// Whether the journal's first line differs from this header in that its search had fewer trials,
/// and in nothing else.
bool has_more_trials(std::string_view journal, const std::string& header);
/// How many trials the search of a header may have; 0: it does not say.
std::uint64_t trials_of(std::string_view header);

/// Applies the events of a journal to an experiment that has the run's first `known` events already,
/// and calls `seen` with each one that it had not, and `coming` before it is applied. -> the number of
/// bytes of whole lines. Throws as for_lines(), DamagedLine for a line that is no event, and
/// std::invalid_argument, with the line's number, for one that this experiment decides otherwise. Throws
/// that too where events between the known ones and the journal's are missing.
std::size_t apply_events(std::string_view journal, Experiment& experiment,
                         const Experiment::Observer& seen, std::uint64_t known,
                         const std::function<void(const Event&)>& coming = {});

/// check_header and apply_events of a journal that holds all of its run, to an experiment without
/// events.
std::size_t replay(std::string_view journal, Experiment& experiment,
                   const Experiment::Observer& seen = {});

}  // namespace troupe::tune
