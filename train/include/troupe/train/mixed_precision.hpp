#pragma once

#include <cstdint>

#include <troupe/detail/archive.hpp>

namespace troupe::train {

/// By what a loss is multiplied before backward(), so that small gradients are not lost to float16
/// (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2). Every option is one
/// of DeepSpeed's `fp16` block, with its meaning and its default.
struct LossScaleOptions {
  /// The scale with which a run begins: `initial_scale_power` 16.
  double initial = 65536;
  /// Steps in a row without an overflow after which it is doubled: `loss_scale_window`.
  std::int64_t window = 1000;
  /// Steps with an overflow that it takes to halve it, after which each one does: `hysteresis`.
  int hysteresis = 2;
  /// Each step without an overflow gives that patience back, and not only each doubling:
  /// `consecutive_hysteresis`.
  bool consecutive_hysteresis = false;
  /// It does not become smaller: `min_loss_scale`. Where the scale is this one and there is an
  /// overflow, Context::scaled throws.
  double smallest = 1;
  /// The scale of the whole run, where it is not to change: `loss_scale`; 0: it changes. A step
  /// with an overflow is left out all the same.
  double fixed = 0;
};

/// In which type the operators under Context::autocast() compute. Without `master_weights` the
/// parameters, their gradients and the state of the optimizers stay what they are: a model of
/// float32 is its own master copy.
struct MixedPrecision {
  enum class Type : std::uint8_t {
    Float32,   ///< as without autocast
    BFloat16,  ///< has the range of float32: no scale
    Float16,   ///< needs the scale: `ctx.scaled(loss).backward()`
  };
  Type type = Type::Float32;
  LossScaleOptions loss_scale = {};  ///< of Float16
  /// Context::prepare gives trained parameters of float32, and so their gradients, this type too,
  /// and each prepared optimizer keeps and updates their values in float32 ("Mixed Precision
  /// Training", section 3.1), as DeepSpeed does it. What it saves is what ranks send each other,
  /// and with ZeRO memory: Adam on P parameters and N ranks takes 16P bytes without, 4P + 12P/N
  /// with stage 1, 2P + 14P/N with 2 and 16P/N with 3. Parameters of batch normalization and
  /// buffers stay float32. Where the program itself writes to a parameter between steps, the next
  /// step or checkpoint copies the elements that were changed into the values in float32, and
  /// leaves the others as precise as they were. Checkpoints have the values in float32, and are
  /// those of any other run.
  /// For Adam, AdamW and SGD, and not with Type::Float32: Context refuses that.
  bool master_weights = false;
};

}  // namespace troupe::train

template <>
struct troupe::EnumRange<troupe::train::MixedPrecision::Type> {
  static constexpr auto first = troupe::train::MixedPrecision::Type::Float32;
  static constexpr auto last = troupe::train::MixedPrecision::Type::Float16;
};
