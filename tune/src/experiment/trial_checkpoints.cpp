#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include <troupe/tune/experiment.hpp>

// Which checkpoints trials go on from, and what they do where one is gone.
namespace troupe::tune {
namespace {

void forget(Trial& trial, const std::string& checkpoint) {
  std::erase_if(trial.earlier, [&](const auto& each) { return each.checkpoint == checkpoint; });
}

/// The newest of those before the last one, which is gone; none: an empty one of the training that
/// the trial is in.
EarlierCheckpoint take_earlier(Trial& trial) {
  trial.checkpoint.clear();
  trial.checkpoint_t = 0;
  if (trial.earlier.empty()) return {.takeovers = trial.takeovers.size()};
  auto last = std::move(trial.earlier.back());
  trial.earlier.pop_back();
  return last;
}

/// The trial's last checkpoint, before another one takes its place.
void keep_as_earlier(Trial& trial) {
  if (trial.checkpoint.empty()) return;
  forget(trial, trial.checkpoint);
  auto& all = trial.earlier;
  all.push_back({trial.checkpoint, trial.checkpoint_t, trial.takeovers.size()});
  if (all.size() <= Trial::kMostEarlier) return;
  // `.keep_checkpoints` may have deleted all but the best one.
  all.erase(std::ranges::find_if(
      all, [&](const auto& each) { return each.checkpoint != trial.best_checkpoint; }));
}

}  // namespace

void Experiment::note_checkpoint(Trial& trial, const Event& report) {
  if (report.checkpoint.empty()) return;
  if (needs_.checkpoints && report.checkpoint == trial.checkpoint) {
    add_notice(
        fmt::format("trial {} reports the checkpoint {} of t={} again at t={}: another trial may "
                    "be going on from it; write each checkpoint to a folder of its own",
                    trial.id, report.checkpoint, trial.checkpoint_t, report.t));
  }
  keep_as_earlier(trial);
  forget(trial, report.checkpoint);  // it was written over
  trial.checkpoint = report.checkpoint;
  trial.checkpoint_t = report.t;
  if (report.checkpoint == trial.best_checkpoint) trial.best_checkpoint_t = report.t;
}

void Experiment::take_over(Trial& trial, const Exploit& exploit) {
  assert(exploit.donor < trials_.size());
  keep_as_earlier(trial);
  trial.takeovers.push_back(
      {.t = trial.t,
       .donor = exploit.donor,
       .checkpoint_t = exploit.checkpoint_t,
       .donor_takeovers = exploit.donor_takeovers,
       .checkpoint = exploit.checkpoint,
       .donor_config = config_after(trials_[exploit.donor], exploit.donor_takeovers),
       .before = trial.config,
       .after = exploit.config,
       .why = exploit.why,
       .own_checkpoint = trial.checkpoint,
       .own_checkpoint_t = trial.checkpoint_t});
  trial.config = exploit.config;
  trial.checkpoint = exploit.checkpoint;
  trial.checkpoint_t = exploit.checkpoint_t;
  trial.t = exploit.checkpoint_t;
}

/// The checkpoint that the trial's attempt was given is gone. -> what the trial does instead: it
/// takes over another, or goes back to what it had.
Decision Experiment::go_on_without_checkpoint(Trial& trial) {
  const auto gone = trial.launched_from;
  const auto instead = scheduler_->on_checkpoint_gone(trial, gone, population());
  undo_takeover_of(gone, trial);
  forget(trial, gone);
  if (instead) {
    // Where the donor's is gone too, nobody is to go back to what is known to be gone.
    if (trial.checkpoint == gone) trial.checkpoint.clear();
    if (trial.checkpoint.empty()) trial.checkpoint_t = 0;
    take_over(trial, *instead);
    return *instead;
  }
  // A trial that went back has none beside the one that it went back to.
  const bool has_own = !trial.checkpoint.empty() && trial.checkpoint != gone;
  if (has_own) return GoOn{.why = fmt::format("it goes on from its own t={}", trial.checkpoint_t)};
  go_back(trial);
  if (trial.checkpoint.empty()) return GoOn{.why = "it goes on from the start"};
  return GoOn{
      .why = fmt::format("it goes on from the checkpoint before, of t={}", trial.checkpoint_t)};
}

/// A takeover of a checkpoint that no report came of has not been.
void Experiment::undo_takeover_of(const std::string& gone, Trial& trial) {
  const bool is_last = !trial.takeovers.empty() && trial.takeovers.back().checkpoint == gone;
  if (!is_last || trial.checkpoint != gone || trial.t != trial.takeovers.back().checkpoint_t)
    return;
  const auto last = trial.takeovers.back();
  trial.takeovers.pop_back();
  // It is the last one again.
  std::erase_if(trial.earlier,
                [&](const auto& each) { return each.checkpoint == last.own_checkpoint; });
  trial.config = last.before;
  trial.checkpoint = last.own_checkpoint;
  trial.checkpoint_t = last.own_checkpoint_t;
  trial.t = last.t;
}

/// The function returned without a report since the takeover, so that nothing was trained with its
/// configuration. Where the trial was behind its donor, it still got the donor's state by it.
void Experiment::take_back_idle_takeover(Trial& trial) {
  if (trial.takeovers.empty() || trial.takeovers.back().donor == trial.id) return;
  const auto before = trial.takeovers.size();
  const auto last = trial.takeovers.back();
  if (last.t < last.checkpoint_t) return;
  undo_takeover_of(last.checkpoint, trial);
  if (trial.takeovers.size() == before) return;
  trial.reason = fmt::format("its training had ended at t={}", last.t);
  add_notice(
      fmt::format("trial {} keeps its own configuration: it took over trial {} at t={}, and its "
                  "function returned without another report. Where it trains to a fixed t, say so "
                  "by .max_t, and nobody takes over there",
                  trial.id, last.donor, last.t));
}

/// From a checkpoint that is gone, to the one before it, else to the start.
void Experiment::go_back(Trial& trial) {
  const auto before = take_earlier(trial);
  const bool is_same_training = before.takeovers == trial.takeovers.size();
  if (is_same_training && (!before.checkpoint.empty() || trial.takeovers.empty())) {
    // The reports that it makes once more are not counted again.
    trial.checkpoint = before.checkpoint;
    trial.checkpoint_t = before.t;
    return;
  }
  take_over(trial, {.donor = trial.id,
                    .checkpoint = before.checkpoint,
                    .checkpoint_t = before.t,
                    .donor_takeovers = before.takeovers,
                    .config = config_after(trial, before.takeovers),
                    .why = "its checkpoint is gone"});
}

std::vector<std::string> Experiment::pinned() const {
  auto names = scheduler_->checkpoints();
  for (const auto& trial : trials_) {
    if (trial.over()) continue;
    if (!trial.checkpoint.empty()) names.push_back(trial.checkpoint);
    // To go back to where the donor's turns out to be gone before there is another.
    const bool has_own =
        trial.takeovers.empty() || trial.takeovers.back().checkpoint != trial.checkpoint;
    if (!has_own && !trial.takeovers.back().own_checkpoint.empty())
      names.push_back(trial.takeovers.back().own_checkpoint);
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

}  // namespace troupe::tune
