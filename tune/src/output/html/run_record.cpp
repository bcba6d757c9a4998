#include "output/html/run_record.hpp"

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
      attempts_.push_back({.trial = trial->id, .attempt = event.attempt, .begin = event.now});
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

}  // namespace troupe::tune
