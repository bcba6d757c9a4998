#pragma once

namespace troupe::train {

/// How the ranks of a run share what training holds besides activations: ZeRO (Rajbhandari et al.,
/// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020, section 5).
struct ZeroOptions {
  /// 0: every rank holds the whole state of its optimizers, as in plain data parallel training. 1:
  /// every rank holds the state of one part of the parameters, updates that part, and gets the
  /// other parts from the other ranks at the end of step(). The results are those of stage 0. Adam,
  /// AdamW and SGD can do this; Context::prepare refuses other optimizers. 2: every rank also holds
  /// the gradients of that part alone once backward() has averaged them. Context::clip_grad_norm
  /// takes the place of torch's function; what else reads or writes gradients fails, but under
  /// no_sync(), where those of a rank are whole. The results are those of stage 0 up to the
  /// rounding of a sum where averages are added to earlier ones. 3: every rank also holds the
  /// values of that part of the parameters alone. The others' come by the bucket
  /// (DataParallelOptions::bucket_bytes) when an operator of LibTorch is about to use one, and two
  /// buckets stay: the trainable is unchanged. The ranks give each other what they need until each
  /// backward has ended on all of them, and in each collective of the Context, so they need not run
  /// the same layers. Frozen parameters stay whole. Context::gathered() is for what needs whole
  /// parameters otherwise. The Context refuses other stages.
  int stage = 0;
  /// With stage 3: a bucket comes while operators compute with another one, where all ranks use the
  /// same bucket and expect the same next one, which is the one that came next the last time. What
  /// is then not used has come for nothing, so that false is faster for a model whose layers take
  /// turns at random. Costs the memory of one more bucket while operators compute. A rank that has
  /// not as much lets none come ahead; an operator that needs more afterwards fails, so set false
  /// where memory is that short.
  bool prefetch = true;
  /// The optimizer's state and master weights lie in main memory, as do with stages 2 and 3 the
  /// averages of gradients, and the CPU updates them there (Ren et al., "ZeRO-Offload:
  /// Democratizing Billion-Scale Model Training", USENIX ATC 2021, section 4). For stages 1 to 3,
  /// also with one rank, whose gradients stay on its GPU. The results are those of the GPU up to
  /// rounding. Where the ranks train on CPUs all memory is main memory, and this changes nothing.
  bool offload_optimizer = false;
  /// A rank's part of the parameters lies in main memory too (Rajbhandari et al., "ZeRO-Infinity",
  /// SC 2021, section 5.1), and comes to the GPU by the bucket when it is used. With stage 3 and
  /// offload_optimizer; the Context refuses it without them. One rank that trains alone has all of
  /// them on its GPU.
  bool offload_parameters = false;
};

}  // namespace troupe::train
