#pragma once

#include <c10/core/Device.h>

#include <troupe/train/context_options.hpp>
#include <troupe/train/plan.hpp>

namespace torch::nn {
class Module;
}

namespace troupe::train {

/// Adds a model that is trained beside the others.
void add_size(ModelSize& all, const torch::nn::Module& model);

/// While an exception is handled: adds to LibTorch's error that a device's memory is full what
/// plan() advises for models of this size under Adam, on as many ranks, all of one node. Nothing to
/// other exceptions, nor where there is no model.
void advise_where_memory_is_full(const ModelSize& models, int ranks, const ContextOptions& options,
                                 c10::Device device) noexcept;

}  // namespace troupe::train
