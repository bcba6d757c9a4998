#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <troupe/tune/experiment.hpp>

#include "experiment/trial_json.hpp"
#include "objectives/best.hpp"
#include "searchers/saved_search.hpp"

// The whole state of an experiment as JSON.
namespace troupe::tune {

namespace {

/// RunProgress::ended, for states that do not have it.
std::size_t ended_of(const std::vector<Trial>& trials) {
  return static_cast<std::size_t>(std::ranges::count_if(trials, [](const Trial& trial) {
    return trial.over() && trial.status != Status::Errored && !trial.ended_with_run;
  }));
}

}  // namespace

std::string Experiment::save() const {
  auto trials = Json::array();
  for (const auto& trial : trials_) trials.push_back(state_of(trial));
  return dump({{"trials", std::move(trials)},
               {"again", std::vector<TrialId>(again_.begin(), again_.end())},
               {"in_flight", in_flight_},
               {"launches", launches_},
               {"notices", notices_},
               {"best", best_ ? Json(*best_) : Json()},
               {"exhausted", exhausted_},
               {"closed", closed_ ? Json(why_closed_) : Json()},
               {"ended_as_asked", ended_as_asked_},
               {"progress",
                {progress_.reports, to_json(progress_.cost), progress_.no_better, progress_.ended}},
               {"searcher", parse(searcher_->save(), "a searcher's state")},
               {"scheduler", parse(scheduler_->save(), "a scheduler's state")}});
}

void Experiment::load(std::string_view saved) {
  try {
    take_up(saved);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not the state of a search: {}", broken.what()));
  }
}

void Experiment::take_up(std::string_view saved) {
  const auto json = parse(saved, "the state of a search");
  std::vector<Trial> trials;
  for (const auto& each : json.at("trials")) {
    trials.push_back(trial_from(each));
    if (trials.back().id != trials.size() - 1)
      throw std::invalid_argument("not the state of a search: its trials are not in their order");
  }
  const auto again = json.at("again").get<std::vector<TrialId>>();
  auto notices = json.at("notices").get<std::vector<std::string>>();
  const auto in_flight = json.at("in_flight").get<std::size_t>();
  const auto launches = json.at("launches").get<std::uint64_t>();
  const auto& closed = json.at("closed");
  const auto& progress = json.at("progress");
  const RunProgress known{
      progress.at(0).get<std::int64_t>(), number_from(progress.at(1)),
      progress.at(2).get<std::size_t>(),
      progress.size() > 3 ? progress.at(3).get<std::size_t>() : ended_of(trials)};
  const bool exhausted = json.at("exhausted").get<bool>();
  const bool ended_as_asked = json.at("ended_as_asked").get<bool>();
  auto before = json.at("searcher"), own = parse(searcher_->save(), "a searcher's state");
  const bool has_more = take_trials(before) < take_trials(own);
  searcher_->load(dump(json.at("searcher")));
  scheduler_->load(dump(json.at("scheduler")));
  trials_ = std::move(trials);
  again_.assign(again.begin(), again.end());
  notices_ = std::move(notices);
  in_flight_ = in_flight;
  launches_ = launches;
  // Some states, of before failed trials were left out, name one of these.
  best_ = best_of(trials_, options_.objective);
  progress_ = known;
  exhausted_ = exhausted && !has_more;
  closed_ = !closed.is_null();
  why_closed_ = closed_ ? closed.get<std::string>() : "";
  ended_as_asked_ = ended_as_asked;
}

}  // namespace troupe::tune
