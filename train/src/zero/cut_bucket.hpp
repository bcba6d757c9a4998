#pragma once

#include <memory>
#include <vector>

#include "zero/flat.hpp"
#include "zero/gradient_shard.hpp"

namespace troupe::train {

/// A bucket of a model whose gradients are cut among the ranks (stages 2 and 3): the values and the
/// averages of the same parameters, in one order.
struct CutBucket {
  std::shared_ptr<Flat> values;
  std::shared_ptr<GradientShard> averages;
};
using CutModel = std::vector<CutBucket>;

}  // namespace troupe::train
