#include "zero/preparing.hpp"

#include <stdexcept>
#include <string>
#include <unordered_set>

#include <fmt/format.h>
#include <torch/optim/optimizer.h>
#include <troupe/train/prepared_optimizer.hpp>

namespace troupe::train {

void check(const ZeroOptions& options) {
  if (options.stage < 0 || options.stage > 3) {
    throw std::invalid_argument(
        fmt::format("ContextOptions::zero.stage is {}; it can be 0 (every rank has the whole state "
                    "of the optimizers), 1 (every rank has a part of it), 2 (and a part of the "
                    "gradients) or 3 (and a part of the parameters)",
                    options.stage));
  }
  if (options.offload_optimizer && options.stage == 0) {
    throw std::invalid_argument(
        "ContextOptions::zero.offload_optimizer is set, and zero.stage is 0, at which an optimizer "
        "updates the parameters where they are: set the stage to 1, 2 or 3, also with one rank");
  }
  if (options.offload_parameters && !(options.offload_optimizer && options.stage == 3)) {
    throw std::invalid_argument(fmt::format(
        "ContextOptions::zero.offload_parameters is set, zero.stage is {} and "
        "zero.offload_optimizer is {}: parameters go to main memory with stage 3, where their "
        "optimizer is too",
        options.stage, options.offload_optimizer));
  }
}

void refuse_shared(const std::vector<NamedTensor>& parameters,
                   const std::vector<CutModel>& models) {
  std::unordered_set<const void*> others;
  for (const auto& model : models) {
    for (const auto& bucket : model) {
      for (const auto& parameter : bucket.values->parameters())
        others.insert(parameter.tensor.unsafeGetTensorImpl());
    }
  }
  for (const auto& [name, tensor] : parameters) {
    if (!others.contains(tensor.unsafeGetTensorImpl())) continue;
    throw std::invalid_argument(fmt::format(
        "parameter {} is in two models: with ContextOptions::zero.stage 2 and 3 prepare one module "
        "that has both in it, or use stage 1",
        name));
  }
}

std::vector<std::vector<NamedTensor>> named_groups(const torch::optim::Optimizer& optimizer,
                                                   const ParameterNames& names,
                                                   c10::Device device) {
  std::vector<std::vector<NamedTensor>> groups;
  std::unordered_set<const void*> seen;
  for (const auto& group : optimizer.param_groups()) {
    auto& named = groups.emplace_back();
    for (const auto& tensor : group.params()) {
      const auto name = names.find(tensor.unsafeGetTensorImpl());
      if (name == names.end() || tensor.device() != device) {
        throw std::invalid_argument(fmt::format(
            "parameter {} of the optimizer is {}: with ContextOptions::zero or "
            "mixed_precision.master_weights prepare the model first, and make the optimizer with "
            "the parameters that it has then",
            seen.size(),
            name == names.end()
                ? "of no model that was prepared"
                : fmt::format("on {}, not on {}", tensor.device().str(), device.str())));
      }
      named.push_back({name->second, tensor});
      if (!seen.insert(tensor.unsafeGetTensorImpl()).second) {
        throw std::invalid_argument(
            fmt::format("the optimizer has parameter {} twice; give it each parameter once",
                        named.back().name));
      }
    }
  }
  return groups;
}

bool has_parts(const ContextOptions& options) {
  return options.zero.stage > 0 || options.mixed_precision.master_weights;
}

OptimizerParts* parts_of(const torch::optim::Optimizer& optimizer, const ContextOptions& options) {
  if (!has_parts(options)) return nullptr;
  const auto* prepared = dynamic_cast<const detail::AnyPreparedOptimizer*>(&optimizer);
  if (prepared == nullptr) {
    throw std::logic_error(
        "with ContextOptions::zero or mixed_precision.master_weights an optimizer must be what "
        "prepare() returned; keep that as `auto optimizer = ctx.prepare(...)`");
  }
  return static_cast<OptimizerParts*>(prepared->shards());
}

}  // namespace troupe::train
