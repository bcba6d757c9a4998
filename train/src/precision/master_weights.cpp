#include "precision/master_weights.hpp"

#include <stdexcept>
#include <unordered_set>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <troupe/train/layers/sync_batch_norm.hpp>

#include "precision/scalar_type.hpp"

namespace troupe::train {
namespace {

bool normalizes_batches(const torch::nn::Module& module) {
  using namespace torch::nn;
  return module.as<BatchNorm1dImpl>() != nullptr || module.as<BatchNorm2dImpl>() != nullptr ||
         module.as<BatchNorm3dImpl>() != nullptr || module.as<SyncBatchNormImpl>() != nullptr;
}

}  // namespace

bool is_small(const at::Tensor& tensor) {
  return tensor.defined() &&
         (tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf);
}

InitialMasters::InitialMasters(MixedPrecision::Type type) : type_(scalar_type_of(type)) {
  if (type != MixedPrecision::Type::Float32) return;
  throw std::invalid_argument(
      "ContextOptions::mixed_precision.master_weights is set, and its type is Float32, in which "
      "the "
      "parameters are their own master copy: set .type to BFloat16 or Float16 too, or leave "
      "master_weights out");
}

void InitialMasters::widen(const torch::nn::Module& module,
                           const std::vector<std::shared_ptr<torch::nn::Module>>& others) {
  const at::NoGradGuard no_grad;
  std::unordered_set<const void*> of_others;
  for (const auto& other : others) {
    for (const auto& parameter : other->parameters())
      of_others.insert(parameter.unsafeGetTensorImpl());
  }
  for (auto& parameter : module.parameters()) {
    if (!is_small(parameter) || !parameter.requires_grad() ||
        of_others.contains(parameter.unsafeGetTensorImpl()))
      continue;
    auto value = find(parameter);
    if (value.defined())
      take_written(value, parameter.detach());
    else
      value = parameter.detach().to(at::kFloat);
    parameter.set_data(value);
  }
  for (const auto& each : module.modules()) {
    if (!normalizes_batches(*each)) continue;
    for (auto& buffer : each->buffers(/*recurse=*/false)) {
      if (is_small(buffer)) buffer.set_data(buffer.to(at::kFloat));
    }
  }
}

void InitialMasters::narrow(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (const auto& each : module.named_modules()) {
    if (normalizes_batches(*each.value())) continue;
    for (const auto& item : each.value()->named_parameters(/*recurse=*/false)) {
      auto parameter = item.value();
      if (!parameter.defined() || !parameter.requires_grad() ||
          parameter.scalar_type() != at::kFloat)
        continue;
      const auto value = parameter.variable_data();
      const auto rounded = value.to(type_);
      if (!at::equal(rounded.isfinite(), value.isfinite())) {
        throw std::invalid_argument(
            fmt::format("parameter {} has a number that {} cannot hold, to which "
                        "mixed_precision.master_weights "
                        "rounds it: train without master weights",
                        each.key().empty() ? item.key() : each.key() + "." + item.key(),
                        type_ == at::kHalf ? "float16" : "bfloat16"));
      }
      kept_.insert_or_assign(parameter.unsafeGetTensorImpl(), Kept{parameter, value});
      parameter.set_data(rounded);
    }
  }
}

at::Tensor InitialMasters::find(const at::Tensor& parameter) const {
  const auto found = kept_.find(parameter.unsafeGetTensorImpl());
  return found == kept_.end() ? at::Tensor() : found->second.value;
}

void take_written(at::Tensor& master, const at::Tensor& value) {
  const auto here = value.to(master.device());
  const auto rounded = master.to(here.scalar_type());
  if (at::equal(rounded, here)) return;
  master.copy_(at::where(rounded.eq(here), master, here.to(master.scalar_type())));
}

}  // namespace troupe::train
