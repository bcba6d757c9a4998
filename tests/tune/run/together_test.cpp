// Reports that come together: judged in their order, kept at once, and then answered.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/pbt.hpp>

#include "experiment/journal.hpp"
#include "run/drive.hpp"
#include "run/fake_launcher.hpp"

namespace together_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

const Objective kObjective{"accuracy", Max};

SchedulerFactory scheduler_of(const std::string& name) {
  if (name == "asha") return asha({.max_t = 9, .eta = 3});
  if (name == "promotion") return asha({.max_t = 9, .eta = 3, .promote = true});
  return pbt({.interval = 3, .mutate = {{"quality", uniform(0, 1)}}});
}

Experiment search(const std::string& scheduler) {
  return {{.objective = kObjective, .seed = 3},
          std::make_unique<RandomSearcher>(SearchSpace{{"quality", uniform(0, 1)}}, 3, 24),
          scheduler_of(scheduler)(kObjective, 3)};
}

/// Hands out together what comes at one time, and notes what is answered before it is kept.
class Together final : public Launcher {
 public:
  explicit Together(FakeLauncher& cluster) : cluster_(cluster) {}

  void keep() { judged_.clear(); }

  void launch(const Launch& launch) override {
    if (!judged_.empty()) ++acted_too_early;
    cluster_.launch(launch);
  }
  std::optional<GangEvent> wait(Seconds timeout) override {
    if (!judged_.empty()) ++acted_too_early;
    return seen(cluster_.wait(timeout));
  }
  std::optional<GangEvent> at_hand() override { return seen(cluster_.wait(Seconds(0))); }
  void answer(TrialId trial, std::int64_t k, Verdict verdict) override {
    if (judged_.contains(trial)) ++acted_too_early;
    ++answers;
    cluster_.answer(trial, k, verdict);
  }
  void replace(const Launch& launch, std::int64_t k) override {
    if (judged_.contains(launch.trial)) ++acted_too_early;
    ++answers;
    cluster_.replace(launch, k);
  }
  void end(TrialId trial) override { cluster_.end(trial); }
  Seconds now() const override { return cluster_.now(); }

  int acted_too_early = 0;
  int answers = 0;
  std::size_t most_together = 0;

 private:
  std::optional<GangEvent> seen(std::optional<GangEvent> event) {
    if (event && event->kind == GangEvent::Kind::Reported) {
      judged_.insert(event->trial);
      most_together = std::max(most_together, judged_.size());
    }
    return event;
  }

  FakeLauncher& cluster_;
  std::set<TrialId> judged_;  // since what happened was kept
};

}  // namespace

TEST_CASE("reports that come together are kept together before any of them is answered",
          "[tune][drive]") {
  const std::string scheduler = GENERATE("asha", "promotion", "pbt");
  CAPTURE(scheduler);
  FakeLauncher cluster({.capacity = 6,
                        .reports = 9,
                        .value =
                            [](const Launch& launch, std::int64_t t) {
                              const auto& quality = launch.config.front().second.value();
                              return std::get<double>(quality) * static_cast<double>(t);
                            },
                        .checkpoints = true});
  Together launcher(cluster);
  auto experiment = search(scheduler), replayed = search(scheduler);
  const auto header = journal_header(experiment);
  auto journal = numbered_line(header, 0) + "\n";
  std::uint64_t events = 0;
  int reports = 0;
  std::string not_kept, state;
  experiment.observe([&](const Event& event, const Trial*) {
    not_kept += numbered_line(to_line(event), ++events) + "\n";
    if (event.kind == Event::Kind::Reported) ++reports;
    state = experiment.save();
  });
  drive(experiment, launcher, {}, {.keep = [&] {
          journal += std::exchange(not_kept, {});
          launcher.keep();
        }});
  CHECK(launcher.acted_too_early == 0);
  CHECK(launcher.most_together >= 4);
  CHECK(launcher.answers == reports);
  // What was kept is what was decided: the journal gives the state, whatever came together.
  CHECK(replay(journal + not_kept, replayed) == journal.size() + not_kept.size());
  CHECK(replayed.save() == state);
}

}  // namespace together_test
