#pragma once

namespace troupe::train {

/// How the ranks of a run share what training holds besides activations: ZeRO (Rajbhandari et al.,
/// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020, section 5).
struct ZeroOptions {
  /// 0: every rank holds the whole state of its optimizers, as in plain data parallel training.
  /// 1: every rank holds the state of one part of the parameters, updates that part, and gets the
  /// other parts from the other ranks at the end of step(). The results are those of stage 0. Adam,
  /// AdamW and SGD can do this; Context::prepare refuses other optimizers.
  /// 2: every rank also holds the gradients of that part alone once backward() has averaged them.
  /// Context::clip_grad_norm takes the place of torch's function; what else reads or writes gradients
  /// fails, but under no_sync(), where those of a rank are whole. The results are those of stage 0 up
  /// to the rounding of a sum where averages are added to earlier ones.
  /// The Context refuses other stages.
  int stage = 0;
};

}  // namespace troupe::train
