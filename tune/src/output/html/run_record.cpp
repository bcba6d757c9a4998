#include "output/html/run_record.hpp"

#include <stdexcept>
#include <utility>

#include "experiment/journal.hpp"

namespace troupe::tune {

void RunRecord::end(TrialId trial, Status status, Seconds now) {
  const auto at = running_.extract(trial);
  if (!at) return;
  auto& attempt = attempts_[at.mapped()];
  attempt.end = now;
  attempt.status = status;
}

void RunRecord::see(const Event& event, const Trial* trial) {
  using Kind = Event::Kind;
  if (trial == nullptr) return;
  switch (event.kind) {
    case Kind::Started:
      end(trial->id, Status::Paused, event.now);  // one that was replaced in the same gang
      running_[trial->id] = attempts_.size();
      attempts_.push_back({.trial = trial->id,
                           .attempt = event.attempt,
                           .begin = event.now,
                           .places = event.places});
      break;
    case Kind::Reported:
      if (!trial->best || trial->best_t != event.t) break;
      if (best_at_.size() <= trial->id) best_at_.resize(trial->id + 1);
      best_at_[trial->id] = event.now;
      break;
    case Kind::Ended:
    case Kind::Requeued:
      end(trial->id, trial->status, event.now);
      break;
    case Kind::Failed:
      end(trial->id, trial->over() ? trial->status : Status::Errored, event.now);
      break;
    default:
      break;
  }
}

std::vector<RunRecord::Attempt> RunRecord::attempts(Seconds now) const {
  auto all = attempts_;
  for (const auto& [trial, at] : running_) all[at].end = now;
  return all;
}

Seconds RunRecord::best_at(TrialId trial) const {
  return trial < best_at_.size() ? best_at_[trial] : Seconds(0);
}

Json RunRecord::save() const {
  auto attempts = Json::array();
  for (const auto& [trial, attempt, begin, end, status, places] : attempts_) {
    attempts.push_back({trial, attempt, begin.count(), end.count(),
                        static_cast<std::size_t>(status), to_json(places)});
  }
  auto best_at = Json::array();
  for (const auto at : best_at_) best_at.push_back(at.count());
  return {{"attempts", std::move(attempts)}, {"best_at", std::move(best_at)}};
}

void RunRecord::load(const Json& saved) {
  RunRecord record;
  for (const auto& each : saved.at("attempts")) {
    const auto status = each.at(4).get<std::size_t>();
    if (status >= kStatuses) throw std::invalid_argument("not a record of attempts");
    record.attempts_.push_back(
        {.trial = each.at(0).get<TrialId>(),
         .attempt = each.at(1).get<int>(),
         .begin = Seconds(each.at(2).get<double>()),
         .end = Seconds(each.at(3).get<double>()),
         .status = static_cast<Status>(status),
         .places = each.size() > 5 ? places_from(each.at(5)) : std::vector<Place>()});
    const auto& attempt = record.attempts_.back();
    if (attempt.status == Status::Running)
      record.running_[attempt.trial] = record.attempts_.size() - 1;
  }
  for (const auto& at : saved.at("best_at")) record.best_at_.emplace_back(at.get<double>());
  *this = std::move(record);
}

}  // namespace troupe::tune
