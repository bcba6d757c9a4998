#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <troupe/tune/replay.hpp>

#include "text/json.hpp"

namespace troupe::tune {
namespace {

class Only final : public Searcher {
 public:
  explicit Only(Configuration configuration) : configuration_{std::move(configuration)} {}

  Suggestion suggest(TrialId trial) override {
    if (trial == 0) return configuration_;
    return NoMore{};
  }
  std::optional<std::uint64_t> size() const override { return 1; }
  std::string save() const override {
    return dump({{"searcher", "only"}, {"config", to_json(configuration_)}});
  }
  void load(std::string_view saved) override {
    if (saved != save())
      throw std::invalid_argument(fmt::format("saved by another search: {}", saved));
  }

 private:
  Configuration configuration_;
};

class Follow final : public TrialScheduler {
 public:
  explicit Follow(std::vector<Segment> segments) : segments_{std::move(segments)} {}

  Decision on_report(const Trial& trial, const Population&) override {
    // By t alone: a trial that lost a checkpoint, and went back, follows the schedule from there.
    std::size_t part = 0;
    while (part + 1 < segments_.size() && segments_[part + 1].after_t <= trial.t) ++part;
    const auto& config = segments_[part].config;
    if (trial.config == config) return GoOn{};
    if (trial.checkpoint.empty() || trial.checkpoint_t != trial.t) {
      return GoOn{.notice = fmt::format("follow: the configuration changes after t={}, at the "
                                        "first report with a checkpoint; this one has none",
                                        segments_[part].after_t)};
    }
    return Exploit{.donor = trial.id,
                   .checkpoint = trial.checkpoint,
                   .checkpoint_t = trial.t,
                   .donor_takeovers = trial.takeovers.size(),
                   .config = config,
                   .why = fmt::format("part {} of {} of the schedule", part + 1, segments_.size())};
  }
  void on_end(TrialId, const Population&) override {}
  SchedulerNeeds needs() const override { return {.checkpoints = segments_.size() > 1}; }
  std::string save() const override {
    auto segments = Json::array();
    for (const auto& [after_t, trial, config] : segments_)
      segments.push_back({{"after_t", after_t}, {"config", to_json(config)}});
    return dump({{"scheduler", "follow"}, {"segments", segments}});
  }
  void load(std::string_view saved) override {
    if (saved != save())
      throw std::invalid_argument(fmt::format("saved by another scheduler: {}", saved));
  }

 private:
  std::vector<Segment> segments_;
};

}  // namespace

SchedulerFactory follow(std::vector<Segment> segments) {
  if (segments.empty()) throw std::invalid_argument("follow: the schedule is empty");
  return [segments = std::move(segments)](const Objective&, std::uint64_t) {
    return std::make_unique<Follow>(segments);
  };
}

SearcherFactory only(Configuration configuration) {
  return [configuration = std::move(configuration)](const SearchSetup&) {
    return std::make_unique<Only>(configuration);
  };
}

}  // namespace troupe::tune
