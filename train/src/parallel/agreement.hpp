#pragma once

#include <string>
#include <vector>

#include <c10/core/Device.h>

#include <troupe/train/communicator.hpp>

#include "parallel/reducer.hpp"

/// What the ranks of a gang tell each other before they train: collectives, over tensors of the communicator's device.
namespace troupe::train {

/// Throws std::invalid_argument on every rank, naming the first rank and the first parameter that differ from rank 0's in
/// name, shape, type or number.
void check_parameters_agree(Communicator& communicator, const std::vector<NamedTensor>& parameters, c10::Device device);

/// Afterwards every rank has root's values.
void broadcast_tensors(Communicator& communicator, const std::vector<NamedTensor>& tensors, c10::Device device,
                       int root);

/// Root's bytes, on every rank.
std::string broadcast_bytes(Communicator& communicator, std::string bytes, c10::Device device, int root);

}  // namespace troupe::train
