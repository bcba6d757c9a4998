#include <troupe/tune/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace troupe::tune {

std::optional<double> Objective::value_in(const Metrics& metrics) const {
  std::optional<double> value;
  for (const auto& each : metrics) {
    if (each.name == metric) value = each.value;
  }
  return value;
}

double Objective::score(double value) const {
  if (!std::isfinite(value)) return -std::numeric_limits<double>::infinity();
  return mode == Mode::Max ? value : -value;
}

double Constraint::violation_of(double value) const {
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  const double beyond = bound == Bound::AtMost ? value - limit : limit - value;
  return std::max(0.0, beyond) / (std::isnormal(limit) ? std::abs(limit) : 1);
}

Turn TrialScheduler::on_place(const Population& population) {
  if (population.to_come > 0) return Begin{};
  const auto* trial = furthest_behind(population.trials);
  if (!trial) return Nobody{};
  return Resume{.trial = trial->id, .why = why_furthest_behind(*trial)};
}

std::string why_furthest_behind(const Trial& trial) {
  return fmt::format("of those that wait it is furthest behind, at t={}", trial.t);
}

const Trial* furthest_behind(const std::vector<Trial>& trials,
                             const std::function<bool(const Trial&)>& may) {
  const Trial* found = nullptr;
  for (const auto& trial : trials) {
    if (trial.status != Status::Paused || trial.in_flight || (may && !may(trial))) continue;
    if (!found || std::pair(trial.t, trial.launch) < std::pair(found->t, found->launch))
      found = &trial;
  }
  return found;
}

namespace {

class Fifo final : public TrialScheduler {
 public:
  Decision on_report(const Trial&, const Population&) override { return {}; }
  void on_end(TrialId, const Population&) override {}
  std::string save() const override { return R"({"scheduler":"fifo"})"; }
  void load(std::string_view saved) override {
    if (saved != save())
      throw std::invalid_argument("saved by another scheduler than fifo: " + std::string(saved));
  }
};

}  // namespace

SchedulerFactory fifo() {
  return [](const Objective&, std::uint64_t) { return std::make_unique<Fifo>(); };
}

}  // namespace troupe::tune
