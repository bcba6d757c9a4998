#pragma once

namespace troupe::train {

/// What the batch at hand counts for, where ranks have different numbers of batches
/// (Context::join). The context's thread sets it between two steps.
struct BatchShare {
  bool counts = true;  ///< false: the rank goes through an old batch again, which counts nowhere
  int first = 0;       ///< the first rank whose batch counts
};

}  // namespace troupe::train
