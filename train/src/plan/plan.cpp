#include <troupe/train/plan.hpp>

#include <algorithm>
#include <unordered_set>

#include <torch/nn/module.h>

#include "plan/advice.hpp"
#include "plan/checks.hpp"
#include "plan/machine.hpp"
#include "plan/memory.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kFloat32Bytes = 4;

std::uint64_t elements_as_float32(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) *
         std::max<std::size_t>(tensor.element_size() / kFloat32Bytes, 1);
}

std::optional<std::size_t> first_that_fits(const std::vector<PlannedStrategy>& strategies) {
  const auto found = std::ranges::find_if(strategies, &PlannedStrategy::fits);
  if (found == strategies.end()) return std::nullopt;
  return static_cast<std::size_t>(found - strategies.begin());
}

}  // namespace

ModelSize size_of(const torch::nn::Module& model) {
  ModelSize size;
  std::unordered_set<const void*> seen;
  const auto is_new = [&](const at::Tensor& tensor) {
    return tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const auto& parameter : model.parameters()) {
    if (!is_new(parameter)) continue;
    if (!parameter.requires_grad()) {
      size.other_bytes += parameter.nbytes();
      continue;
    }
    const auto elements = elements_as_float32(parameter);
    size.trained += elements;
    size.largest = std::max(size.largest, elements);
  }
  for (const auto& buffer : model.buffers()) {
    if (is_new(buffer)) size.other_bytes += buffer.nbytes();
  }
  return size;
}

Plan plan(const ModelSize& model, const PlanOptions& options) {
  check_plan(model, options);
  Plan plan;
  plan.model = model;
  plan.options = completed(options);
  if (plan.model.largest == 0) plan.model.largest = largest_of_transformer(model.trained);
  plan.strategies = predict_all(plan.model, plan.options);
  plan.making = making_bytes(plan.model, plan.options);
  plan.recommended = first_that_fits(plan.strategies);
  plan.advice = advice_on(plan);
  return plan;
}

Plan plan(const torch::nn::Module& model, const PlanOptions& options) {
  return plan(size_of(model), options);
}

}  // namespace troupe::train
