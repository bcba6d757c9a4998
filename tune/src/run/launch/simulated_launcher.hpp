#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <troupe/tune/detail/simulate.hpp>

#include "run/launch/launcher.hpp"

namespace troupe::tune {

/// A cluster in virtual time: trials report what a curve says, each report with a checkpoint.
/// Deterministic; `world` outlives it.
class SimulatedLauncher final : public Launcher {
 public:
  explicit SimulatedLauncher(const detail::World& world) : world_{world} {}

  void launch(const Launch& launch) override;
  std::optional<GangEvent> wait(Seconds timeout) override;
  void answer(TrialId trial, std::int64_t k, Verdict verdict) override;
  void replace(const Launch& launch, std::int64_t k) override;
  void end(TrialId trial) override;
  Seconds now() const override { return now_; }

  std::uint64_t steps() const { return steps_; }  ///< that were reported
  std::uint64_t launches() const { return launches_; }
  Seconds trained() const { return trained_; }  ///< by all trials together

 private:
  struct Gang {
    Launch launch = {};
    std::int64_t k = 0;
  };

  Metrics metrics_at(const Configuration& config, std::int64_t t) const;
  void schedule(Seconds delay, GangEvent event);
  void place();
  void begin(const Launch& launch);
  void step(Gang& gang);

  const detail::World& world_;
  Seconds now_{0};
  std::uint64_t sequence_ =
      0;  // of events of the same time, which come in the order in which they were made
  std::map<std::pair<Seconds, std::uint64_t>, GangEvent> events_;
  std::map<TrialId, Gang> running_;
  std::optional<Launch> waiting_;
  std::uint64_t steps_ = 0;
  std::uint64_t launches_ = 0;
  Seconds trained_{0};
};

}  // namespace troupe::tune
