#include <troupe/train/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace troupe::train {
namespace {

/// DeepSpeed counts from the step before the first one, which is -1.
constexpr std::int64_t kBefore = -1;
constexpr double kSecondBeta = 0.99;  // of each step that OneCycle gives a momentum

[[noreturn]] void refuse(const char* field, double value, const char* expected) {
  throw std::invalid_argument(fmt::format("{} is {}: expected {}", field, value, expected));
}

/// So that sums of them are counted, and doubles have them all.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 52;

void check_count(const char* field, std::int64_t value, std::int64_t least) {
  if (value < least || value > kMostSteps)
    refuse(field, static_cast<double>(value), least == 1 ? "1 or more" : "0 or more");
}

void check_steps(const char* field, std::int64_t value) { check_count(field, value, 1); }

void check_at_least_0(const char* field, double value) {
  if (!(value >= 0) || !std::isfinite(value)) refuse(field, value, "0 or more");
}

/// 0 to 1, while step < steps.
double risen(WarmupType type, std::int64_t step, std::int64_t steps) {
  return type == WarmupType::Log
             ? 1.0 / std::log(static_cast<double>(steps)) * std::log(static_cast<double>(step + 1))
             : static_cast<double>(step) / static_cast<double>(steps);
}

/// A logarithm of 1 is no divisor.
std::int64_t rise_of(std::int64_t warmup_num_steps) {
  return std::max<std::int64_t>(2, warmup_num_steps);
}

ScheduledStep at(const WarmupLR& schedule, std::int64_t step, double lr) {
  const double low = schedule.warmup_min_lr;
  if (step == kBefore) return {.lr = low};
  const auto rise = rise_of(schedule.warmup_num_steps);
  const double part = step < rise ? risen(schedule.warmup_type, step, rise) : 1;
  return {.lr = low + (schedule.warmup_max_lr.value_or(lr) - low) * part};
}

ScheduledStep at(const WarmupDecayLR& schedule, std::int64_t step, double) {
  const double low = schedule.warmup_min_lr;
  if (step == kBefore) return {.lr = low};
  const auto rise = rise_of(schedule.warmup_num_steps);
  const auto left = static_cast<double>(schedule.total_num_steps - step);
  const auto fall = static_cast<double>(schedule.total_num_steps - rise);
  const double part = step < rise ? risen(schedule.warmup_type, step, rise)
                                  : std::max(0.0, left / std::max(1.0, fall));
  return {.lr = low + (schedule.warmup_max_lr - low) * part};
}

ScheduledStep at(const WarmupCosineLR& schedule, std::int64_t step, double lr) {
  if (step == kBefore) return {.lr = 0};
  const auto rise = rise_of(schedule.warmup_num_steps);
  if (step < rise) {
    const double low = schedule.warmup_min_ratio;
    return {.lr = lr * (low + risen(schedule.warmup_type, step, rise) * (1 - low))};
  }
  const auto fall = std::max<std::int64_t>(1, schedule.total_num_steps - rise);
  const double fallen = static_cast<double>(step - rise + 1) / static_cast<double>(fall);
  const double part = (1 + std::cos(std::numbers::pi * std::min(1.0, fallen))) / 2;
  const double low = schedule.cos_min_ratio;
  return {.lr = lr * std::max(0.0, low + (1 - low) * part)};
}

/// The steps of OneCycle's halves.
struct Halves {
  std::int64_t first, second;

  explicit Halves(const OneCycle& schedule)
      : first(schedule.cycle_first_step_size),
        second(schedule.cycle_second_step_size.value_or(first)) {}
  std::int64_t both() const { return first + second; }
};

/// 0 at the ends of the cycle, 1 between its halves.
double height(const OneCycle& schedule, std::int64_t step) {
  const Halves halves(schedule);
  const auto both = static_cast<double>(halves.both());
  const auto along = static_cast<double>(step + 1) / both;
  const double x = 1 + along - std::floor(1 + along);
  const double middle = static_cast<double>(halves.first) / both;
  const bool rises = x <= middle;
  const auto stairs =
      rises ? schedule.cycle_first_stair_count
            : schedule.cycle_second_stair_count.value_or(schedule.cycle_first_stair_count);
  if (stairs == 0) return rises ? x / middle : (x - 1) / (middle - 1);
  // By whole steps, since the double just before a stair may be below it.
  const auto within = (step + 1) % halves.both();
  const auto part = within <= halves.first
                        ? static_cast<double>(within) * static_cast<double>(stairs) /
                              static_cast<double>(halves.first)
                        : static_cast<double>(halves.both() - within) *
                              static_cast<double>(stairs) / static_cast<double>(halves.second);
  return std::floor(part) / static_cast<double>(stairs);
}

ScheduledStep at(const OneCycle& schedule, std::int64_t step, double) {
  const double low = schedule.cycle_min_lr;
  const double least = schedule.cycle_min_mom;
  const double most = schedule.cycle_max_mom;
  ScheduledStep found;
  double momentum = least;
  const auto both = Halves(schedule).both();
  if (step == kBefore) {
    found.lr = low;
  } else if (step < both) {
    const double up = height(schedule, step);
    found.lr = low + (schedule.cycle_max_lr - low) * up;
    momentum = most - (most - least) * up;
  } else {
    const double decays =
        schedule.decay_step_size == 0
            ? 0
            : static_cast<double>(step - both + 1) / static_cast<double>(schedule.decay_step_size);
    found.lr = low / (1 + schedule.decay_lr_rate * decays);
    momentum = most * (1 + schedule.decay_mom_rate * decays);
  }
  if (schedule.cycle_momentum) found.betas = {momentum, kSecondBeta};
  return found;
}

ScheduledStep at(const LRRangeTest& schedule, std::int64_t step, double) {
  const double low = schedule.lr_range_test_min_lr;
  if (step == kBefore) return {.lr = low};
  double steps =
      static_cast<double>(step + 1) / static_cast<double>(schedule.lr_range_test_step_size);
  if (schedule.lr_range_test_staircase) steps = std::floor(steps);
  return {.lr = low * (1 + schedule.lr_range_test_step_rate * steps)};
}

void check_one(const WarmupLR& schedule) {
  check_at_least_0("warmup_min_lr", schedule.warmup_min_lr);
  if (schedule.warmup_max_lr) check_at_least_0("warmup_max_lr", *schedule.warmup_max_lr);
  check_steps("warmup_num_steps", schedule.warmup_num_steps);
}

void check_one(const WarmupDecayLR& schedule) {
  check_steps("total_num_steps", schedule.total_num_steps);
  check_at_least_0("warmup_min_lr", schedule.warmup_min_lr);
  check_at_least_0("warmup_max_lr", schedule.warmup_max_lr);
  check_steps("warmup_num_steps", schedule.warmup_num_steps);
}

void check_one(const WarmupCosineLR& schedule) {
  check_steps("total_num_steps", schedule.total_num_steps);
  check_at_least_0("warmup_min_ratio", schedule.warmup_min_ratio);
  check_steps("warmup_num_steps", schedule.warmup_num_steps);
  check_at_least_0("cos_min_ratio", schedule.cos_min_ratio);
}

void check_one(const OneCycle& schedule) {
  check_at_least_0("cycle_min_lr", schedule.cycle_min_lr);
  check_at_least_0("cycle_max_lr", schedule.cycle_max_lr);
  check_at_least_0("decay_lr_rate", schedule.decay_lr_rate);
  check_steps("cycle_first_step_size", schedule.cycle_first_step_size);
  for (const auto& [field, value] :
       {std::pair("cycle_second_step_size", Halves(schedule).second),
        std::pair("cycle_first_stair_count", schedule.cycle_first_stair_count),
        std::pair("cycle_second_stair_count", schedule.cycle_second_stair_count.value_or(0)),
        std::pair("decay_step_size", schedule.decay_step_size)}) {
    check_count(field, value, 0);
  }
  if (!schedule.cycle_momentum) return;
  check_at_least_0("decay_mom_rate", schedule.decay_mom_rate);
  for (const auto& [field, value] : {std::pair("cycle_min_mom", schedule.cycle_min_mom),
                                     std::pair("cycle_max_mom", schedule.cycle_max_mom)}) {
    if (!(value >= 0 && value < 1)) refuse(field, value, "0 or more, and less than 1");
  }
}

void check_one(const LRRangeTest& schedule) {
  check_at_least_0("lr_range_test_min_lr", schedule.lr_range_test_min_lr);
  check_steps("lr_range_test_step_size", schedule.lr_range_test_step_size);
  check_at_least_0("lr_range_test_step_rate", schedule.lr_range_test_step_rate);
}

}  // namespace

void check_schedule(const Schedule& schedule) {
  std::visit([](const auto& one) { check_one(one); }, schedule);
}

ScheduledStep step_after(const Schedule& schedule, std::int64_t steps, double lr) {
  return std::visit([&](const auto& one) { return at(one, steps + kBefore, lr); }, schedule);
}

}  // namespace troupe::train
