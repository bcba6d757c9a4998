#include <troupe/tune/scheduler.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

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

namespace {

class Fifo final : public TrialScheduler {
 public:
  Decision on_report(TrialId, std::int64_t, const Metrics&) override { return {}; }
  void on_end(TrialId) override {}
  std::string save() const override { return R"({"scheduler":"fifo"})"; }
  void load(std::string_view saved) override {
    if (saved != save()) throw std::invalid_argument("saved by another scheduler than fifo: " + std::string(saved));
  }
};

}  // namespace

SchedulerFactory fifo() {
  return [](const Objective&, std::uint64_t) { return std::make_unique<Fifo>(); };
}

}  // namespace troupe::tune
