#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include <troupe/detail/archive.hpp>

namespace troupe::train {

/// Schedules of the learning rate, as values: DeepSpeed's, with the names, the defaults and the
/// numbers of its classes (0.19, runtime/lr_schedules.py). They count the steps that an optimizer
/// has made; a step that was left out counts for nothing. The first step is made at the beginning
/// of a schedule.

/// How a rise goes from 0 to 1 over n steps: by log(step) / log(n), or by step / n.
enum class WarmupType : std::uint8_t { Log, Linear };

/// The rate rises, and stays.
struct WarmupLR {
  double warmup_min_lr = 0;
  /// None: the optimizer's own rate; an engine gives all groups the rate of the first.
  std::optional<double> warmup_max_lr = {};
  std::int64_t warmup_num_steps = 1000;
  WarmupType warmup_type = WarmupType::Log;
};

/// The rate rises, and falls to 0 on a line.
struct WarmupDecayLR {
  std::int64_t total_num_steps = 0;  ///< has to be given
  double warmup_min_lr = 0;
  double warmup_max_lr = 0.001;
  std::int64_t warmup_num_steps = 1000;
  WarmupType warmup_type = WarmupType::Log;
};

/// The rate rises to the optimizer's own rate, of which all ratios are, and falls on a cosine.
struct WarmupCosineLR {
  std::int64_t total_num_steps = 0;  ///< has to be given
  double warmup_min_ratio = 0;
  std::int64_t warmup_num_steps = 1000;
  double cos_min_ratio = 0.0001;
  WarmupType warmup_type = WarmupType::Log;
};

/// The rate rises and falls once, while the momentum (the first of `betas`) falls and rises;
/// afterwards both decay (Smith, "A disciplined approach to neural network hyper-parameters", 2018,
/// section 4).
struct OneCycle {
  double cycle_min_lr = 0;  ///< has to be given
  double cycle_max_lr = 0;  ///< has to be given
  double decay_lr_rate = 0;
  std::int64_t cycle_first_step_size = 2000;                  ///< steps of the rise
  std::optional<std::int64_t> cycle_second_step_size = {};    ///< none: as many as the rise has
  std::int64_t cycle_first_stair_count = 0;                   ///< 0: no stairs
  std::optional<std::int64_t> cycle_second_stair_count = {};  ///< none: as the rise has
  std::int64_t decay_step_size = 0;                           ///< 0: no decay
  bool cycle_momentum = true;                                 ///< of Adam and AdamW
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0;
};

/// The rate rises without end, to find the highest rate with which training does not fail.
struct LRRangeTest {
  double lr_range_test_min_lr = 0.001;
  std::int64_t lr_range_test_step_size = 2000;
  double lr_range_test_step_rate = 1;
  bool lr_range_test_staircase = false;
};

using Schedule = std::variant<WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest>;

/// What a schedule says for one step.
struct ScheduledStep {
  double lr = 0;
  std::optional<std::array<double, 2>> betas = {};  ///< none: they stay what they are
};

/// Throws std::invalid_argument, naming the field, for a schedule that cannot be.
void check_schedule(const Schedule& schedule);

/// -> what the step is made with that follows `steps` steps. `lr`: the optimizer's own rate. Any
/// thread.
ScheduledStep step_after(const Schedule& schedule, std::int64_t steps, double lr);

}  // namespace troupe::train

template <>
struct troupe::EnumRange<troupe::train::WarmupType> {
  static constexpr auto first = troupe::train::WarmupType::Log;
  static constexpr auto last = troupe::train::WarmupType::Linear;
};
