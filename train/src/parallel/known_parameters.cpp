#include "parallel/known_parameters.hpp"

#include <cstddef>
#include <unordered_set>

#include <torch/nn/module.h>

#include "parallel/agreement.hpp"

namespace troupe::train {
namespace {

using torch::nn::Module;

/// Reaches what Module shows to those that derive from it: Module::parameters() makes a name for
/// each, which takes thirty times as long.
struct Opened : Module {
  static const auto& parameters_of(const Module& module) { return module.*(&Opened::parameters_); }
};

/// Calls `see` with each tensor in the model's order, until it returns false. -> whether it was
/// never false.
template <class See>
bool for_each_parameter(const Module& module, const See& see) {
  for (const auto& parameter : Opened::parameters_of(module)) {
    if (parameter.value().defined() && !see(parameter.value())) return false;
  }
  for (const auto& child : module.children()) {
    if (!for_each_parameter(*child, see)) return false;
  }
  return true;
}

}  // namespace

KnownParameters::KnownParameters(const std::shared_ptr<Module>& model) : model_(model) {
  for_each_parameter(*model, [&](const at::Tensor& tensor) {
    tensors_.push_back(tensor);
    return true;
  });
}

std::vector<NamedTensor> KnownParameters::added() const {
  const auto model = model_.lock();
  if (!model) return {};
  std::size_t seen = 0;
  const bool is_same = for_each_parameter(*model, [&](const at::Tensor& tensor) {
    return seen < tensors_.size() && tensors_[seen++].is_same(tensor);
  });
  if (is_same) return {};
  std::unordered_set<const void*> known;
  for (const auto& tensor : tensors_) known.insert(tensor.unsafeGetTensorImpl());
  auto now = layout_of(*model).parameters;
  std::erase_if(now, [&](const NamedTensor& parameter) {
    return known.contains(parameter.tensor.unsafeGetTensorImpl()) ||
           !parameter.tensor.requires_grad();
  });
  return now;
}

}  // namespace troupe::train
