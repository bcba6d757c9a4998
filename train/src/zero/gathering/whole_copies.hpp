#pragma once

#include <memory>
#include <vector>

#include "parallel/shown_memory.hpp"
#include "zero/flat.hpp"
#include "zero/gathering/gathering.hpp"

namespace troupe::train {

/// Whole values of parameters of which a rank holds a part, on one rank, in the place of the
/// parameters' memory while this lives: for what reads that memory without an operator, as LibTorch's
/// archives do. Beside the copies Gathering::kKept buckets are there.
class WholeCopies {
 public:
  /// A collective. `keeps`: on this rank; elsewhere the parameters stay as they are.
  WholeCopies(Gathering& gathering, const std::vector<std::shared_ptr<Flat>>& buckets, bool keeps);

 private:
  ShownMemory shown_;
};

}  // namespace troupe::train
