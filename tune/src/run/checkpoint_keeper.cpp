#include "run/checkpoint_keeper.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

namespace troupe::tune::detail {
namespace {

namespace fs = std::filesystem;

/// One spelling of a path: links are followed, as far as it is there.
std::string normal(const std::string& path) {
  std::error_code failed;
  auto found = fs::weakly_canonical(path, failed).string();
  if (failed) found = fs::path(path).lexically_normal().string();
  while (found.size() > 1 && found.ends_with('/')) found.pop_back();
  return found;
}

/// Of paths in one spelling.
bool is_inside(const std::string& path, const std::string& folder) {
  if (!path.starts_with(folder) || path.size() == folder.size()) return false;
  return folder.ends_with('/') || path[folder.size()] == '/';
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(fs::path run, Objective objective, std::size_t keep)
    : run_{normal(run.string())}, objective_{std::move(objective)}, keep_{keep} {}

void CheckpointKeeper::see(const Event& event) {
  if (keep_ == 0 || event.kind != Event::Kind::Reported || event.checkpoint.empty()) return;
  auto& kept = kept_[event.trial];
  const auto value = objective_.value_in(event.metrics);
  std::erase_if(kept, [&](const Kept& each) { return each.checkpoint == event.checkpoint; });
  std::erase(may_go_, event.checkpoint);
  kept.push_back({event.checkpoint, normal(event.checkpoint),
                  value ? objective_.score(*value) : -std::numeric_limits<double>::infinity()});
  auto best_first = kept;
  std::ranges::stable_sort(best_first, std::greater{}, &Kept::score);
  best_first.resize(std::min(best_first.size(), keep_));
  const auto is_among_best = [&](const Kept& each) {
    return std::ranges::find(best_first, each.checkpoint, &Kept::checkpoint) != best_first.end();
  };
  const auto last = std::prev(kept.end());
  const auto gone = std::stable_partition(kept.begin(), last, is_among_best);
  for (auto each = gone; each != last; ++each) may_go_.push_back(each->checkpoint);
  kept.erase(gone, last);
}

Json CheckpointKeeper::save() const {
  auto kept = Json::array();
  for (const auto& [trial, all] : kept_) {
    for (const auto& each : all) kept.push_back({trial, each.checkpoint, to_json(each.score)});
  }
  return {{"kept", std::move(kept)}, {"may_go", may_go_}};
}

void CheckpointKeeper::load(const Json& saved) {
  if (keep_ == 0) return;
  std::map<TrialId, std::vector<Kept>> kept;
  for (const auto& each : saved.at("kept")) {
    auto checkpoint = each.at(1).get<std::string>();
    auto path = normal(checkpoint);
    kept[each.at(0).get<TrialId>()].push_back(
        {std::move(checkpoint), std::move(path), number_from(each.at(2))});
  }
  may_go_ = saved.at("may_go").get<std::vector<std::string>>();
  kept_ = std::move(kept);
}

bool CheckpointKeeper::holds_one_that_stays(const std::string& path,
                                            const std::vector<std::string>& pinned) const {
  const auto is_held = [&](const std::string& other) {
    return other == path || is_inside(other, path);
  };
  if (std::ranges::any_of(pinned, [&](const auto& other) { return is_held(normal(other)); }))
    return true;
  return std::ranges::any_of(kept_, [&](const auto& trial) {
    return std::ranges::any_of(trial.second, is_held, &Kept::path);
  });
}

void CheckpointKeeper::tidy(const Experiment& experiment) {
  // A run that was interrupted may go on from before its last reports, which the journal does not
  // have then.
  if (may_go_.empty() || (experiment.closed() && !experiment.ended_as_asked())) return;
  const auto pinned = experiment.pinned();
  std::erase_if(may_go_, [&](const std::string& checkpoint) {
    const auto path = normal(checkpoint);
    if (!is_inside(path, run_)) return true;
    if (std::ranges::binary_search(pinned, checkpoint) || holds_one_that_stays(path, pinned))
      return false;
    std::error_code ignored;  // what cannot be deleted stays
    fs::remove_all(checkpoint, ignored);
    return true;
  });
}

}  // namespace troupe::tune::detail
