#pragma once

#include <string>
#include <vector>

#include <c10/core/Device.h>

#include <troupe/train/communicator.hpp>
#include <troupe/train/context_options.hpp>

#include "parallel/buckets.hpp"

namespace torch::nn {
class Module;
}

/// What the ranks of a gang tell each other before they train: collectives, over tensors of the
/// communicator's device.
namespace troupe::train {

/// What of a model must be the same on all ranks.
struct ModelLayout {
  std::vector<NamedTensor> parameters;  ///< also those that want no gradient
  std::vector<NamedTensor> buffers;
  std::vector<NamedTensor> trained;  ///< parameters whose gradients are averaged
};

/// Each tensor that the model has, in the model's order. A parameter that two layers share is there
/// once, with its first name.
ModelLayout layout_of(const torch::nn::Module& module);

/// Throws std::invalid_argument on every rank, naming the first rank that differs from rank 0 and
/// the first option, parameter, buffer or gradient in which it does: in name, shape, strides, type,
/// number, whether it wants a gradient, and its bucket.
void check_models_agree(Communicator& communicator, const ModelLayout& model,
                        const ContextOptions& options, c10::Device device);

/// The same for the parameters of an optimizer, group by group, and its type.
void check_optimizers_agree(Communicator& communicator, const std::string& type,
                            const std::vector<std::vector<NamedTensor>>& groups,
                            c10::Device device);

/// The same for lines of text, one for each option of something. `what`: those that have them.
void check_options_agree(Communicator& communicator, const std::string& what,
                         const std::vector<std::string>& options, c10::Device device);

/// Afterwards every rank has root's values.
void broadcast_tensors(Communicator& communicator, const std::vector<NamedTensor>& tensors,
                       c10::Device device, int root);

}  // namespace troupe::train
