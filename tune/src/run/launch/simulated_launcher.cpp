#include "run/launch/simulated_launcher.hpp"

#include <cassert>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "text/format.hpp"

namespace troupe::tune {

void SimulatedLauncher::schedule(Seconds delay, GangEvent event) {
  events_.emplace(std::pair(now_ + delay, sequence_++), std::move(event));
}

void SimulatedLauncher::launch(const Launch& launch) {
  assert(!waiting_);  // drive() asks for one gang more than there are free places
  waiting_ = launch;
  place();
}

void SimulatedLauncher::place() {
  if (!waiting_ || running_.size() >= world_.gangs) return;
  const auto launch = *std::exchange(waiting_, std::nullopt);
  running_[launch.trial] = {launch};
  begin(launch);
}

void SimulatedLauncher::begin(const Launch& launch) {
  ++launches_;
  schedule(world_.launch, {.kind = GangEvent::Kind::Placed, .trial = launch.trial});
}

Metrics SimulatedLauncher::metrics_at(const Configuration& config, std::int64_t t) const {
  const auto values =
      world_.curves ? world_.curves(config, t) : std::vector{world_.curve(config, t)};
  if (values.size() != world_.metrics.size()) {
    throw std::invalid_argument(
        fmt::format("tune::simulate: .curves gave {}, and the run has {} in "
                    "its objectives and constraints",
                    counted(values.size(), "value"), counted(world_.metrics.size(), "metric")));
  }
  Metrics metrics;
  for (std::size_t i = 0; i < values.size(); ++i)
    metrics.emplace_back(world_.metrics[i].c_str(), values[i]);
  return metrics;
}

void SimulatedLauncher::step(Gang& gang) {
  const auto& launch = gang.launch;
  const auto t = launch.after_t + ++gang.k;
  if (t > world_.reports)
    return schedule(Seconds(0), {.kind = GangEvent::Kind::Ended, .trial = launch.trial});
  const auto lasts = world_.step ? world_.step(launch.config) : Seconds(1);
  if (!(lasts.count() >= 0) || !std::isfinite(lasts.count())) {
    throw std::invalid_argument(fmt::format(
        "tune::simulate: .step returned {} s for {}, and has to be a time of at least 0",
        lasts.count(), to_string(launch.config)));
  }
  trained_ += lasts;
  GangEvent report{.kind = GangEvent::Kind::Reported, .trial = launch.trial, .k = gang.k};
  report.metrics = metrics_at(launch.config, t);
  report.checkpoint = fmt::format("trial {}, t={}", launch.trial, t);
  schedule(lasts, std::move(report));
}

std::optional<GangEvent> SimulatedLauncher::wait(Seconds timeout) {
  if (events_.empty() || events_.begin()->first.first > now_ + timeout) {
    now_ += timeout;
    return std::nullopt;
  }
  auto node = events_.extract(events_.begin());
  now_ = node.key().first;
  auto& event = node.mapped();
  if (event.kind == GangEvent::Kind::Reported) ++steps_;
  if (event.kind == GangEvent::Kind::Placed) step(running_.at(event.trial));
  if (is_last(event) && running_.erase(event.trial) > 0) place();
  return std::move(event);
}

void SimulatedLauncher::answer(TrialId trial, std::int64_t, Verdict verdict) {
  const auto gang = running_.find(trial);
  if (gang == running_.end()) return;  // it was ended
  if (verdict == Verdict::Continue) return step(gang->second);
  schedule(Seconds(0), {.kind = GangEvent::Kind::Ended, .trial = trial});
}

void SimulatedLauncher::replace(const Launch& launch, std::int64_t) {
  const auto gang = running_.find(launch.trial);
  if (gang == running_.end()) return;
  gang->second = {launch};
  begin(launch);
}

void SimulatedLauncher::end(TrialId trial) {
  const bool waits = waiting_ && waiting_->trial == trial;
  if (!waits && !running_.contains(trial)) return;
  if (waits) waiting_.reset();
  std::erase_if(events_, [&](const auto& event) { return event.second.trial == trial; });
  schedule(Seconds(0), {.kind = GangEvent::Kind::Failed, .trial = trial, .text = "ended"});
}

}  // namespace troupe::tune
