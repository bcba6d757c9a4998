#include "experiment/journal.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include "experiment/decision_json.hpp"
#include "searchers/saved_search.hpp"
#include "text/json_line.hpp"
#include "text/names.hpp"

namespace troupe::tune {
namespace {

constexpr std::array<std::string_view, 9> kEvents{"launched", "started", "reported",
                                                  "overdue",  "ended",   "failed",
                                                  "requeued", "dropped", "closed"};
constexpr std::array<std::string_view, 5> kFaults{"trial", "system", "final", "checkpoint",
                                                  "ended"};

template <class Enum, std::size_t size>
Enum named(const std::array<std::string_view, size>& names, const Json& json) {
  const auto at = std::ranges::find(names, json.get<std::string>());
  if (at == names.end()) throw std::invalid_argument(fmt::format("{} is not known", dump(json)));
  return static_cast<Enum>(at - names.begin());
}

template <std::size_t size, class Enum>
std::string_view name_in(const std::array<std::string_view, size>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

Event parsed(const Json& json) {
  Event event;
  event.kind = named<Event::Kind>(kEvents, json.at("event"));
  event.now = Seconds(json.at("now").get<double>());
  if (event.kind == Event::Kind::Closed) {
    event.text = json.at("why").get<std::string>();
    return event;
  }
  event.trial = json.at("trial").get<TrialId>();
  event.attempt = json.at("attempt").get<int>();
  if (json.contains("decision")) event.decision = decision_from(json);
  if (event.kind == Event::Kind::Launched) {
    event.config = configuration_from(json.at("config"));
    event.checkpoint = json.value("checkpoint", "");
    event.t = json.value("after_t", std::int64_t{0});
    event.takeovers = json.value("takeovers", std::size_t{0});
    event.workers = json.value("workers", 0);
  }
  if (event.kind == Event::Kind::Started && json.contains("places"))
    event.places = places_from(json.at("places"));
  if (event.kind == Event::Kind::Dropped) event.text = json.at("why").get<std::string>();
  if (event.kind == Event::Kind::Failed) {
    event.text = json.at("why").get<std::string>();
    event.fault = named<Fault>(kFaults, json.at("fault"));
  }
  if (event.kind == Event::Kind::Overdue) json.at("decision");
  if (event.kind == Event::Kind::Reported) {
    event.t = json.at("t").get<std::int64_t>();
    event.metrics = metrics_from(json.at("metrics"));
    event.checkpoint = json.value("checkpoint", "");
    json.at("decision");
  }
  return event;
}

/// The option that a value of the header comes from, where that has another name.
std::string_view option_of(std::string_view name) {
  if (name.empty()) return "it";
  return name.starts_with("searcher.") && name.ends_with(".trials") ? ".trials" : name;
}

/// The first value in which two JSON texts differ: "seed is 5 there, 6 here".
std::string difference(const Json& there, const Json& here, const std::string& name) {
  if (there.is_object() && here.is_object()) {
    for (const auto& [key, value] : here.items()) {
      if (there.contains(key) && there.at(key) == value) continue;
      return difference(there.value(key, Json()), value, name.empty() ? key : name + "." + key);
    }
    for (const auto& [key, value] : there.items()) {
      if (here.contains(key)) continue;
      return difference(value, Json(), name.empty() ? key : name + "." + key);
    }
  }
  return fmt::format("{} is {} there, {} here", option_of(name), dump(there), dump(here));
}

void apply(Event event, Experiment& experiment, const Experiment::Observer& seen) {
  const bool about_trial = event.kind != Event::Kind::Closed;
  const bool is_known = about_trial && event.trial < experiment.trials().size();
  if (event.kind == Event::Kind::Reported && is_known)
    event.config = experiment.trials()[event.trial].config;
  experiment.apply(event);
  if (seen) seen(event, about_trial ? &experiment.trials()[event.trial] : nullptr);
}

}  // namespace

Json to_json(const std::vector<Place>& places) {
  auto all = Json::array();
  for (const auto& [node, slot] : places) all.push_back({node, slot});
  return all;
}

std::vector<Place> places_from(const Json& json) {
  std::vector<Place> places;
  for (const auto& each : json)
    places.push_back({each.at(0).get<std::string>(), each.at(1).get<int>()});
  return places;
}

/// What is no criterion is left out.
Json to_json(const StopWhen& stop) {
  Json json{{"reports", stop.reports}, {"reaches", stop.reaches ? to_json(*stop.reaches) : Json()}};
  if (stop.plateau.reports > 0)
    json["plateau"] = {{"reports", stop.plateau.reports}, {"delta", stop.plateau.delta}};
  if (stop.trial_time.count() > 0) json["trial_time_ms"] = stop.trial_time.count();
  if (stop.all_reports > 0) json["all_reports"] = stop.all_reports;
  if (stop.no_better_trials > 0) json["no_better_trials"] = stop.no_better_trials;
  if (stop.cost > 0) json["cost"] = {{"of", name_in_utf8(stop.cost_metric)}, {"most", stop.cost}};
  return json;
}

std::string journal_header(const Experiment& experiment) {
  const auto& options = experiment.options();
  Json json{{"journal", kJournalVersion},
            {"metric", name_in_utf8(options.objective.metric)},
            {"mode", options.objective.mode == Mode::Max ? "max" : "min"}};
  if (!options.objectives.empty()) json["objectives"] = to_json(options.objectives);
  if (!options.constraints.empty()) json["constraints"] = to_json(options.constraints);
  json.update(Json{{"seed", options.seed},
                   {"max_failures", options.max_failures},
                   {"system_retries", options.system_retries},
                   {"stop", to_json(options.stop)},
                   {"searcher", parse(experiment.searcher().save(), "a searcher's state")},
                   {"scheduler", parse(experiment.scheduler().save(), "a scheduler's state")}});
  return dump(json);
}

namespace {

/// Of which there are most.
std::string reported_line(const Event& event) {
  JsonLine line;
  line.add("event", name_in(kEvents, event.kind))
      .add("now", event.now.count())
      .add("trial", event.trial)
      .add("attempt", event.attempt)
      .add("t", event.t)
      .add("metrics", event.metrics);
  if (!event.checkpoint.empty()) line.add("checkpoint", event.checkpoint);
  const auto& decision = event.decision;
  line.add("decision", name_of(decision));
  if (const auto* exploit = std::get_if<Exploit>(&decision))
    return line.add_json("exploit", dump(to_json(*exploit))).end();
  if (!why_of(decision).empty()) line.add("reason", why_of(decision));
  if (const auto rung = rung_of(decision)) line.add("rung", *rung);
  if (!notice_of(decision).empty()) line.add("notice", notice_of(decision));
  return line.end();
}

}  // namespace

std::string to_line(const Event& event) {
  if (event.kind == Event::Kind::Reported) return reported_line(event);
  Json json{{"event", name_in(kEvents, event.kind)}, {"now", event.now.count()}};
  if (event.kind == Event::Kind::Closed) {
    json["why"] = event.text;
    return dump(json);
  }
  json["trial"] = event.trial;
  json["attempt"] = event.attempt;
  if (event.kind == Event::Kind::Launched) {
    json["config"] = to_json(event.config);
    if (!event.checkpoint.empty()) json["checkpoint"] = event.checkpoint;
    if (event.t > 0) json["after_t"] = event.t;
    if (event.takeovers > 0) json["takeovers"] = event.takeovers;
    if (event.workers > 0) json["workers"] = event.workers;
    if (event.decision != Decision{}) json.update(to_json(event.decision));
  }
  if (event.kind == Event::Kind::Overdue) json.update(to_json(event.decision));
  if (!event.places.empty()) json["places"] = to_json(event.places);
  if (event.kind == Event::Kind::Dropped) json["why"] = event.text;
  if (event.kind == Event::Kind::Failed) {
    json["why"] = event.text;
    json["fault"] = name_in(kFaults, event.fault);
    if (event.fault == Fault::Checkpoint) json.update(to_json(event.decision));
  }
  return dump(json);
}

Event event_from(std::string_view line) {
  try {
    return parsed(parse(line, "an event of a journal"));
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(
        fmt::format("not an event of a journal ({}): '{}'", broken.what(), line.substr(0, 80)));
  }
}

std::size_t end_of_open(std::string_view journal) {
  const auto closed = journal.find("\n{\"event\":\"closed\"");
  return closed == std::string_view::npos ? journal.size() : closed + 1;
}

void check_header(std::string_view journal, const std::string& header) {
  if (journal.find('\n') == std::string_view::npos) return;
  const auto there = first_line_of(journal);
  if (dump(there) == header) return;
  throw std::invalid_argument("the journal is of another search: " +
                              difference(there, parse(header, "a header"), ""));
}

bool has_more_trials(std::string_view journal, const std::string& header) {
  Json there;
  try {
    there = first_line_of(journal);
  } catch (const std::invalid_argument&) {
    return false;  // who goes on with it is told why
  }
  auto here = parse(header, "a header");
  if (!there.contains("searcher")) return false;
  const auto before = take_trials(there["searcher"]), now = take_trials(here["searcher"]);
  if (before.size() != now.size() || before == now || dump(there) != dump(here)) return false;
  return std::ranges::equal(before, now, std::less_equal{});
}

std::uint64_t trials_of(std::string_view header) {
  auto json = parse(header.substr(0, header.find('\n')), "the first line of a journal");
  if (!json.is_object() || !json.contains("searcher")) return 0;
  const auto trials = take_trials(json["searcher"]);
  return trials.empty() ? 0 : trials.front();
}

namespace {

/// Throws DamagedLine.
Event event_in(std::string_view line, std::size_t number) {
  try {
    return event_from(line);
  } catch (const std::invalid_argument& refused) {
    throw DamagedLine(number, line, refused.what());
  }
}

}  // namespace

std::size_t apply_events(std::string_view journal, Experiment& experiment,
                         const Experiment::Observer& seen, std::uint64_t known,
                         const std::function<void(const Event&)>& coming) {
  std::uint64_t event = 0;  // of the whole run, the next line's
  return for_lines(journal, [&](std::string_view line, std::size_t number) {
    if (number == 1) {
      event = events_before(journal);
      if (event <= known) return;
      throw std::invalid_argument(
          fmt::format("the journal goes on after event {}, and the snapshot before it {}", event,
                      known == 0 ? "is gone" : fmt::format("ends with event {}", known)));
    }
    if (event++ < known) return;
    const auto happened = event_in(line, number);
    if (coming) coming(happened);
    try {
      apply(happened, experiment, seen);
    } catch (const std::invalid_argument& refused) {
      throw std::invalid_argument(
          fmt::format("line {} of the journal: {}", number, refused.what()));
    }
  });
}

std::size_t replay(std::string_view journal, Experiment& experiment,
                   const Experiment::Observer& seen) {
  check_header(journal, journal_header(experiment));
  return apply_events(journal, experiment, seen, 0);
}

}  // namespace troupe::tune
