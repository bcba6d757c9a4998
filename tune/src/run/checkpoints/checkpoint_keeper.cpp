#include "run/checkpoints/checkpoint_keeper.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>
#include <variant>

#include <troupe/tune/detail/checkpoints.hpp>

namespace troupe::tune::detail {
namespace {

namespace fs = std::filesystem;

/// Of what may go, a node is told of so much at a time.
constexpr std::size_t kMostAtOnce = 1'000;

std::string without_end(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool is_interrupted(const Experiment& experiment) {
  return experiment.closed() && !experiment.ended_as_asked();
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(fs::path run, Objective objective, std::size_t keep)
    : told_run_{run.string()},
      names_{run},
      run_{normal(told_run_)},
      objective_{std::move(objective)},
      keep_{keep} {}

/// One spelling of a checkpoint's path: links are followed, as far as it is there. The name of one on
/// a node that does not share the folder stays as it is, and so is inside of nothing here.
std::string CheckpointKeeper::normal(const std::string& checkpoint) const {
  if (CheckpointOrigins::own_node_of(checkpoint)) return checkpoint;
  const auto path = names_.path_of(checkpoint);
  std::error_code failed;
  auto found = fs::weakly_canonical(path, failed).string();
  if (failed) found = fs::path(path).lexically_normal().string();
  return without_end(std::move(found));
}

/// The path of a checkpoint on its node, without a look at any file.
std::string CheckpointKeeper::path_on_node(const std::string& checkpoint) const {
  const fs::path path = CheckpointOrigins::path_of(names_.path_of(checkpoint));
  return without_end(path.lexically_normal().string());
}

void CheckpointKeeper::see(const Event& event, const Trial* trial) {
  if (keep_ == 0 || trial == nullptr) return;
  if (event.kind == Event::Kind::Launched) {
    for (auto& each : may_go_on_nodes_) {
      each.may_come_again |=
          each.trial == event.trial && each.takeovers == event.takeovers && each.t > event.t;
    }
  }
  if (event.kind != Event::Kind::Reported) return;
  const auto& best = trial->best_checkpoint;
  const auto known = best_.find(trial->id);
  const bool has_other_best =
      !best.empty() && (known == best_.end() || known->second.checkpoint != best);
  if (has_other_best) best_[trial->id] = {best, normal(best)};
  if (!event.checkpoint.empty()) {
    auto& kept = kept_[event.trial];
    const auto value = objective_.value_in(event.metrics);
    const bool takes_over = std::holds_alternative<Exploit>(event.decision);
    std::erase_if(kept, [&](const Kept& each) { return each.checkpoint == event.checkpoint; });
    std::erase(may_go_, event.checkpoint);
    std::erase_if(may_go_on_nodes_,
                  [&](const OnNode& each) { return each.checkpoint == event.checkpoint; });
    kept.push_back({event.checkpoint, normal(event.checkpoint),
                    value ? objective_.score(*value) : -std::numeric_limits<double>::infinity(),
                    event.t, trial->takeovers.size() - (takes_over ? 1 : 0)});
  }
  if (has_other_best || !event.checkpoint.empty()) let_others_go(event.trial);
}

/// Of equal scores the checkpoint that was reported first stays, as of equal values the first is the
/// trial's best.
void CheckpointKeeper::let_others_go(TrialId trial) {
  auto& kept = kept_[trial];
  if (kept.empty()) return;
  auto best_first = kept;
  std::ranges::stable_sort(best_first, std::greater{}, &Kept::score);
  best_first.resize(std::min(best_first.size(), keep_));
  const auto best = best_.find(trial);
  const auto stays = [&](const Kept& each) {
    if (best != best_.end() && each.checkpoint == best->second.checkpoint) return true;
    return std::ranges::find(best_first, each.checkpoint, &Kept::checkpoint) != best_first.end();
  };
  const auto last = std::prev(kept.end());
  const auto gone = std::stable_partition(kept.begin(), last, stays);
  for (auto each = gone; each != last; ++each)
    let_go({.checkpoint = each->checkpoint,
            .trial = trial,
            .t = each->t,
            .takeovers = each->takeovers});
  kept.erase(gone, last);
}

void CheckpointKeeper::let_go(OnNode checkpoint) {
  if (!CheckpointOrigins::own_node_of(checkpoint.checkpoint))
    return may_go_.push_back(std::move(checkpoint.checkpoint));
  may_go_on_nodes_.push_back(std::move(checkpoint));
}

void CheckpointKeeper::see_spare_copy(const std::string& copy) {
  if (keep_ > 0) let_go({.checkpoint = names_.name_of(copy)});
}

Json CheckpointKeeper::save() const {
  auto kept = Json::array();
  for (const auto& [trial, all] : kept_) {
    for (const auto& each : all)
      kept.push_back({trial, each.checkpoint, to_json(each.score), each.t, each.takeovers});
  }
  auto all_best = Json::array();
  for (const auto& [trial, best] : best_) all_best.push_back({trial, best.checkpoint});
  auto on_nodes = Json::array();
  for (const auto& [checkpoint, trial, t, takeovers, may_come_again] : may_go_on_nodes_)
    on_nodes.push_back({checkpoint, trial, t, takeovers, may_come_again});
  return {{"kept", std::move(kept)},
          {"best", std::move(all_best)},
          {"may_go", may_go_},
          {"may_go_on_nodes", std::move(on_nodes)}};
}

void CheckpointKeeper::load(const Json& saved) {
  if (keep_ == 0) return;
  std::map<TrialId, std::vector<Kept>> kept;
  for (const auto& each : saved.at("kept")) {
    auto checkpoint = each.at(1).get<std::string>();
    auto path = normal(checkpoint);
    // Older snapshots have not the rest.
    const auto t = each.size() < 5 ? 0 : each.at(3).get<std::int64_t>();
    const auto takeovers = each.size() < 5 ? 0 : each.at(4).get<std::size_t>();
    kept[each.at(0).get<TrialId>()].push_back(
        {std::move(checkpoint), std::move(path), number_from(each.at(2)), t, takeovers});
  }
  std::map<TrialId, Best> all_best;
  for (const auto& each : saved.at("best")) {
    auto checkpoint = each.at(1).get<std::string>();
    auto path = normal(checkpoint);
    all_best[each.at(0).get<TrialId>()] = {std::move(checkpoint), std::move(path)};
  }
  std::vector<OnNode> on_nodes;
  const auto listed = saved.value("may_go_on_nodes", Json::array());
  for (const auto& each : listed) {
    on_nodes.push_back({each.at(0).get<std::string>(), each.at(1).get<TrialId>(),
                        each.at(2).get<std::int64_t>(), each.at(3).get<std::size_t>(),
                        each.at(4).get<bool>()});
  }
  may_go_ = saved.at("may_go").get<std::vector<std::string>>();
  may_go_on_nodes_ = std::move(on_nodes);
  kept_ = std::move(kept);
  best_ = std::move(all_best);
}

bool CheckpointKeeper::holds_one_that_stays(const std::string& path,
                                            const std::vector<std::string>& pinned) const {
  const auto is_held = [&](const std::string& other) {
    return other == path || is_inside(other, path);
  };
  if (std::ranges::any_of(pinned, [&](const auto& other) { return is_held(normal(other)); }))
    return true;
  if (std::ranges::any_of(best_, [&](const auto& trial) { return is_held(trial.second.path); }))
    return true;
  return std::ranges::any_of(kept_, [&](const auto& trial) {
    return std::ranges::any_of(trial.second, is_held, &Kept::path);
  });
}

void CheckpointKeeper::tidy(const Experiment& experiment) {
  // A run that was interrupted may go on from before its last reports, which the journal does not
  // have then.
  if (may_go_.empty() || is_interrupted(experiment)) return;
  const auto pinned = experiment.pinned();
  std::erase_if(may_go_, [&](const std::string& checkpoint) {
    const auto path = normal(checkpoint);
    if (!is_inside(path, run_)) return true;
    if (std::ranges::binary_search(pinned, checkpoint) || holds_one_that_stays(path, pinned))
      return false;
    std::error_code ignored;  // what cannot be deleted stays
    fs::remove_all(names_.path_of(checkpoint), ignored);
    return true;
  });
}

/// By path.
std::vector<CheckpointKeeper::Staying> CheckpointKeeper::all_that_stay(
    const Experiment& experiment) const {
  std::vector<Staying> all;
  const auto add = [&](const std::string& checkpoint) {
    all.push_back({path_on_node(checkpoint), CheckpointOrigins::own_node_of(checkpoint)});
  };
  for (const auto& checkpoint : experiment.pinned()) add(checkpoint);
  for (const auto& [trial, best] : best_) add(best.checkpoint);
  for (const auto& [trial, kept] : kept_) {
    for (const auto& each : kept) add(each.checkpoint);
  }
  std::ranges::sort(all);
  return all;
}

void CheckpointKeeper::tidy_nodes(const Experiment& experiment, NodeRemover& nodes) {
  if (may_go_on_nodes_.empty() || is_interrupted(experiment)) return;
  const auto all = all_that_stay(experiment);
  const auto holds_one = [&](const std::string& path) {
    const auto is_there = [&](const std::string& prefix) {
      const auto at = std::ranges::lower_bound(all, prefix, {}, &Staying::path);
      return at != all.end() && (at->path == path || is_inside(at->path, path));
    };
    return is_there(path) || is_there(path + "/");
  };
  std::map<std::uint32_t, NodeRemoval> removals;
  std::erase_if(may_go_on_nodes_, [&](const OnNode& each) {
    const auto node = *CheckpointOrigins::own_node_of(each.checkpoint);
    const auto state = nodes.look_at(node);
    if (state != NodeRemover::Node::Free) return state == NodeRemover::Node::Gone;
    if (each.may_come_again && !experiment.trials()[each.trial].over()) return false;
    auto path = path_on_node(each.checkpoint);
    auto& gone = removals[node].gone;
    if (gone.size() == kMostAtOnce || holds_one(path)) return false;
    gone.push_back(std::move(path));
    return true;
  });
  for (auto& [node, removal] : removals) {
    if (removal.gone.empty()) continue;
    removal.run = told_run_;
    for (const auto& each : all) {
      if (each.node == node) removal.staying.push_back(each.path);
    }
    nodes.remove(node, removal);
  }
}

}  // namespace troupe::tune::detail
