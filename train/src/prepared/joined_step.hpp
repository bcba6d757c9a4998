#pragma once

#include <cstdint>
#include <optional>

#include <troupe/train/communicator.hpp>

#include "parallel/batch_share.hpp"

namespace troupe::train {

/// What a rank brings to a step of a loop over batches of which the ranks have different numbers.
enum class Brings : std::int32_t {
  Nothing,  ///< it has had no batch in this loop
  Repeat,   ///< the last one that it had
  Batch,
};

/// Where a rank is, and what it brings.
struct JoinedStep {
  std::int32_t loop = 0;  ///< so many loops were begun before, in this context
  std::int32_t step = 0;  ///< so many steps of the loop
  Brings brings = Brings::Nothing;
};

/// What this rank's batch counts for in the step; nothing where no rank has a batch, and the loop
/// ends. A collective. Throws on every rank, naming two ranks: std::logic_error where these are in
/// different steps, std::invalid_argument where one has a batch and the other never had one.
std::optional<BatchShare> begin_joined_step(Communicator& control, const JoinedStep& own);

}  // namespace troupe::train
