#pragma once

#include <cstdint>

#include <troupe/train/mixed_precision.hpp>

namespace troupe::train {

/// What a run that continues has of a LossScaler. A value that is written into checkpoints.
struct LossScaleState {
  double scale = 0;
  std::int64_t steps = 0;           ///< with and without an overflow
  std::int64_t last_overflow = -1;  ///< the step in which the last one was; -1: none
  int patience = 0;                 ///< overflows until one halves the scale; at least 1
};

/// The loss scale of a run: dynamic, by the rule of DeepSpeed's DynamicLossScaler (0.18,
/// runtime/fp16/loss_scaler.py), or fixed.
///
///   event                              does
///   scaled                             settles the steps since the last one; the loss is counted
///   stepped(finite), of any optimizer  is kept until the next `scaled`
///
/// A settled step with an overflow halves the scale where there is no patience left, and takes from
/// it otherwise. One without doubles the scale where the steps since the last overflow are a
/// multiple of the window.
///
/// 1. All losses between two steps have one scale, also where several optimizers step after them.
/// 2. However many optimizers step between two losses, that is one step.
/// 3. Ranks that were told of the same steps have the same scale.
///
/// Lives in one rank's process; used by one thread.
class LossScaler {
 public:
  /// Throws std::invalid_argument, naming the option, for one that cannot be.
  explicit LossScaler(LossScaleOptions options);

  /// A loss is about to be scaled. -> by what. Throws std::runtime_error where an overflow comes
  /// although the scale is the smallest, and where kMostInARow of them have come with a fixed one.
  double scaled();
  /// An optimizer has looked at its gradients for a step.
  void stepped(bool are_finite);

  double scale() const { return state_.scale; }
  /// Losses that were scaled: tells whether one was since some moment.
  std::int64_t losses() const { return losses_; }
  /// Steps, of any optimizer, whose gradients were not finite.
  std::int64_t skipped() const { return skipped_; }

  /// With the steps settled that there were.
  LossScaleState state() const;
  /// Goes on from there, as far as the options of this run let it: a fixed scale stays what it is,
  /// and none is below the smallest.
  void restore(const LossScaleState& state);

 private:
  enum class Seen : std::uint8_t { Nothing, Finite, Overflow };

  /// -> the state after the steps that were seen; nothing where it would have to be below the
  /// smallest.
  bool settle(LossScaleState& state) const;

  static constexpr std::int64_t kMostInARow = 100;

  const LossScaleOptions options_;
  LossScaleState state_;
  Seen seen_ = Seen::Nothing;
  std::int64_t losses_ = 0;
  std::int64_t skipped_ = 0;
  std::int64_t overflows_in_a_row_ = 0;
};

}  // namespace troupe::train
