#include "output/trackers/earlier_reports.hpp"

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "text/json.hpp"

namespace troupe::tune {
namespace {

/// What is known of a trial so far: enough for a tracker.
struct Told {
  std::int64_t t = 0;
  std::size_t takeovers = 0;
};

Trial running(TrialId id, Configuration config) {
  return {.id = id, .config = std::move(config), .status = Status::Running, .in_flight = true};
}

}  // namespace

void tell_earlier_reports(const std::filesystem::path& folder, std::uintmax_t bytes,
                          const std::vector<Trial>& trials,
                          const std::function<void(const Event& event, const Trial& trial)>& tell) {
  std::map<TrialId, Told> told;
  std::ifstream in(folder / "reports.jsonl", std::ios::binary);
  std::uintmax_t read = 0;
  for (std::string text; read < bytes && std::getline(in, text); read += text.size() + 1) {
    try {
      const auto line = parse(text, "a report");
      const auto id = line.at("trial").get<TrialId>();
      const auto trial = running(id, configuration_from(line.at("config")));
      Event event{.kind = Event::Kind::Launched,
                  .trial = id,
                  .attempt = line.at("attempt").get<int>(),
                  .config = trial.config,
                  .now = Seconds(line.at("time_s").get<double>())};
      const auto t = line.at("t").get<std::int64_t>();
      const auto [at, is_first] = told.try_emplace(id);
      const bool goes_back = t <= at->second.t;
      if (goes_back) {
        ++at->second.takeovers;
        event.t = t - 1;
      }
      event.takeovers = at->second.takeovers;
      if (is_first || goes_back) tell(event, trial);
      at->second.t = t;
      event.kind = Event::Kind::Reported;
      event.t = t;
      event.metrics = metrics_from(line.at("metrics"));
      tell(event, trial);
    } catch (const std::exception&) {
      // Somebody has changed the file, which is theirs.
    }
  }
  for (const auto& trial : trials) {
    Event event{.kind = Event::Kind::Launched,
                .trial = trial.id,
                .attempt = trial.attempt,
                .config = trial.config,
                .now = trial.started};
    if (!told.contains(trial.id)) tell(event, running(trial.id, trial.config));
    if (trial.in_flight) continue;
    event.kind = Event::Kind::Ended;
    event.now = trial.ended;
    tell(event, trial);
  }
}

}  // namespace troupe::tune
