#include "precision/loss_scaler.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace troupe::train {
namespace {

constexpr double kFactor = 2;
// Of these a float holds the inverse.
constexpr double kSmallest = 0x1p-126;
constexpr double kLargest = 0x1p126;

void require(bool condition, const char* option, double value, const char* what) {
  if (condition) return;
  throw std::invalid_argument(fmt::format(
      "ContextOptions::mixed_precision.loss_scale.{} is {}; it is {}", option, value, what));
}

LossScaleOptions checked(LossScaleOptions options) {
  const auto is_scale = [](double value) { return value >= kSmallest && value <= kLargest; };
  require(is_scale(options.initial), "initial", options.initial, "a number from 2^-126 to 2^126");
  require(is_scale(options.smallest) && (options.fixed > 0 || options.smallest <= options.initial),
          "smallest", options.smallest, "a number of at least 2^-126, and at most `initial`");
  require(options.window >= 1, "window", static_cast<double>(options.window), "at least 1");
  require(options.hysteresis >= 1, "hysteresis", options.hysteresis, "at least 1");
  require(options.fixed == 0 || is_scale(options.fixed), "fixed", options.fixed,
          "a number from 2^-126 to 2^126, or 0 for a scale that changes");
  return options;
}

}  // namespace

LossScaler::LossScaler(LossScaleOptions options)
    : options_(checked(options)),
      state_{.scale = options.fixed > 0 ? options.fixed : options.initial,
             .patience = options.hysteresis} {}

bool LossScaler::settle(LossScaleState& state) const {
  if (seen_ == Seen::Nothing) return true;
  bool is_settled = true;
  if (options_.fixed > 0) {
    // Nothing changes it.
  } else if (seen_ == Seen::Overflow) {
    if (state.patience > 1) {
      --state.patience;
    } else {
      is_settled = state.scale > options_.smallest;
      state.scale = std::max(state.scale / kFactor, options_.smallest);
    }
    state.last_overflow = state.steps;
  } else {
    if (options_.consecutive_hysteresis) state.patience = options_.hysteresis;
    if ((state.steps - state.last_overflow) % options_.window == 0) {
      state.patience = options_.hysteresis;
      state.scale = std::min(state.scale * kFactor, std::max(state.scale, kLargest));
    }
  }
  ++state.steps;
  return is_settled;
}

double LossScaler::scaled() {
  if (seen_ == Seen::Finite) overflows_in_a_row_ = 0;
  if (seen_ == Seen::Overflow) ++overflows_in_a_row_;
  const bool is_settled = settle(state_);
  seen_ = Seen::Nothing;
  const bool is_hopeless = options_.fixed > 0 && overflows_in_a_row_ >= kMostInARow;
  if (!is_settled || is_hopeless) {
    throw std::runtime_error(fmt::format(
        "gradients are not finite although the loss scale is {}: the loss or the model has values "
        "that are infinite or NaN. Look for the step where the loss became so: its data, the "
        "learning rate, or an optimizer that ctx.prepare has not returned and that steps with "
        "gradients times the scale. Type::BFloat16 needs no scale",
        is_hopeless ? fmt::format("fixed at {}, in {} steps in a row", options_.fixed, kMostInARow)
                    : fmt::format("the smallest, {}", options_.smallest)));
  }
  ++losses_;
  return state_.scale;
}

void LossScaler::stepped(bool are_finite) {
  if (!are_finite) {
    ++skipped_;
    seen_ = Seen::Overflow;
  } else if (seen_ == Seen::Nothing) {
    seen_ = Seen::Finite;
  }
}

void LossScaler::restore(const LossScaleState& state) {
  state_ = state;
  if (options_.fixed > 0)
    state_.scale = options_.fixed;
  else
    state_.scale = std::max(state_.scale, options_.smallest);
}

LossScaleState LossScaler::state() const {
  auto state = state_;
  settle(state);
  return state;
}

}  // namespace troupe::train
