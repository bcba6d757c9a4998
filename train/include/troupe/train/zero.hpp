#pragma once

namespace troupe::train {

/// How the ranks of a run share what training holds besides activations: ZeRO (Rajbhandari et al.,
/// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020, section 5).
struct ZeroOptions {
  /// 0: every rank holds the whole state of its optimizers, as in plain data parallel training.
  /// 1: every rank holds the state of one part of the parameters, updates that part, and gets the
  /// other parts from the other ranks at the end of step(). The results are those of stage 0. Adam,
  /// AdamW and SGD can do this; Context::prepare refuses other optimizers. The Context refuses other
  /// stages.
  int stage = 0;
};

}  // namespace troupe::train
