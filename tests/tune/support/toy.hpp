#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/experiment.hpp>
#include <troupe/tune/schedulers/pbt.hpp>

namespace troupe::tune {

/// Hands out a list of configurations.
class ListSearcher final : public Searcher {
 public:
  explicit ListSearcher(std::vector<Configuration> list) : list_{std::move(list)} {}
  Suggestion suggest(TrialId trial) override {
    if (trial < list_.size()) return list_[trial];
    return NoMore{};
  }
  std::optional<std::uint64_t> size() const override { return list_.size(); }
  std::string save() const override { return "{}"; }
  void load(std::string_view) override {}

 private:
  std::vector<Configuration> list_;
};

/// The toy problem of population-based training (Jaderberg et al., 2017, figure 2): maximise 1.2 -
/// (a^2 + b^2) by the gradient of h0 a^2 + h1 b^2, from a = b = 0.9, with two members of which each
/// sees half of the problem. In lockstep.
class Toy {
 public:
  Toy(PbtOptions options, std::uint64_t seed)
      : experiment_{{.objective = {"q", Max}, .seed = seed},
                    std::make_unique<ListSearcher>(std::vector<Configuration>{
                        {{"h0", 1.0}, {"h1", 0.0}}, {{"h0", 0.0}, {"h1", 1.0}}}),
                    pbt(std::move(options))({"q", Max}, seed)} {}

  /// -> the better member's 1.2 - (a^2 + b^2) after so many steps.
  double run(std::int64_t steps) {
    for (int member = 0; member < 2; ++member)
      begin(std::get<Launch>(experiment_.next(Seconds(0))));
    while (!is_done(steps)) {
      for (TrialId member = 0; member < 2; ++member) {
        if (experiment_.trials()[member].t < steps) step(member);
      }
    }
    return std::max(quality(now_[0]), quality(now_[1]));
  }

  std::size_t takeovers() const {
    return experiment_.trials()[0].takeovers.size() + experiment_.trials()[1].takeovers.size();
  }
  const Experiment& experiment() const { return experiment_; }

 private:
  using Weights = std::pair<double, double>;
  static constexpr double kRate = 0.1;

  static double quality(const Weights& at) {
    return 1.2 - (at.first * at.first + at.second * at.second);
  }
  bool is_done(std::int64_t steps) const {
    return experiment_.trials()[0].t >= steps && experiment_.trials()[1].t >= steps;
  }

  void begin(const Launch& launch) {
    now_[launch.trial] =
        launch.checkpoint.empty() ? Weights(0.9, 0.9) : kept_.at(launch.checkpoint);
    experiment_.started(launch.trial, Seconds(0));
  }

  void step(TrialId member) {
    const auto& trial = experiment_.trials()[member];
    auto& [a, b] = now_[member];
    a -= kRate * 2 * std::get<double>(trial.config[0].second.value()) * a;
    b -= kRate * 2 * std::get<double>(trial.config[1].second.value()) * b;
    const auto checkpoint = std::to_string(checkpoints_++);
    kept_[checkpoint] = now_[member];
    const auto decision = experiment_.report(member, trial.t + 1, {{"q", quality(now_[member])}},
                                             checkpoint, Seconds(0));
    if (std::holds_alternative<Exploit>(decision)) begin(experiment_.relaunch(member, Seconds(0)));
  }

  Experiment experiment_;
  std::map<TrialId, Weights> now_;
  std::map<std::string, Weights> kept_;
  std::size_t checkpoints_ = 0;
};

}  // namespace troupe::tune
