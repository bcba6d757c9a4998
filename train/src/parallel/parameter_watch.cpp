#include "parallel/parameter_watch.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include "parallel/agreement.hpp"

namespace troupe::train {
namespace {

using torch::nn::Module;

/// Reaches what Module shows to those that derive from it: Module::parameters() makes a name for
/// each.
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

// Delegates, so that the destructor runs where a hook is refused half-way.
ParameterWatch::ParameterWatch(const std::shared_ptr<Module>& model) : ParameterWatch() {
  model_ = model;
  for_each_parameter(*model, [&](const at::Tensor& tensor) {
    tensors_.push_back(tensor);
    return true;
  });
  for (auto& parameter : layout_of(*model).parameters) {
    // No other type can want a gradient, now or later.
    if (parameter.tensor.is_floating_point() || parameter.tensor.is_complex())
      watch(std::move(parameter));
  }
}

ParameterWatch::~ParameterWatch() {
  for (const auto& watched : watched_) {
    if (watched->hook) watched->variable.remove_hook(*watched->hook);
  }
}

void ParameterWatch::watch(NamedTensor parameter) {
  auto one = std::make_unique<Watched>();
  one->name = std::move(parameter.name);
  one->variable = std::move(parameter.tensor);
  watched_.push_back(std::move(one));
  auto& watched = *watched_.back();
  auto& variable = watched.variable;
  if (variable.requires_grad()) {
    watched.accumulator = torch::autograd::impl::grad_accumulator(variable);
    watched.hook = variable.register_hook([this, &watched](const at::Tensor&) { check(watched); });
    return;
  }
  // Only what wants a gradient takes a hook, and keeps it when it is frozen.
  variable.requires_grad_(true);
  watched.hook = variable.register_hook([this, &watched](const at::Tensor&) { check(watched); });
  variable.requires_grad_(false);
}

void ParameterWatch::check(const Watched& watched) const {
  if (watched.accumulator &&
      torch::autograd::impl::try_get_grad_accumulator(watched.variable) == watched.accumulator)
    return;
  throw std::logic_error(fmt::format(
      "parameter {} {} its model was prepared, so that its gradient would not be averaged over the "
      "ranks: prepare the model again after such a change",
      watched.name,
      watched.accumulator ? "was given another type or device after"
                          : "is trained now, and was frozen when"));
}

void ParameterWatch::refuse_added(bool (*is_averaged)(const at::Tensor&)) const {
  for (const auto& [name, tensor] : added()) {
    if (is_averaged(tensor)) continue;
    throw std::logic_error(fmt::format(
        "parameter {} is another tensor than its model had when it was prepared, so that its "
        "gradient would not be averaged over the ranks: prepare the model again after such a "
        "change, or freeze the parameter (requires_grad_(false)) if it is to stay as it is",
        name));
  }
}

/// Those that the model has and did not have, and that want gradients, with their names now.
std::vector<NamedTensor> ParameterWatch::added() const {
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

void refuse_unused(const std::vector<std::string>& unused, std::size_t parameters) {
  constexpr std::size_t kNamed = 10;
  std::vector<std::string> names(unused.begin(), unused.begin() + std::min(kNamed, unused.size()));
  if (unused.size() > kNamed) names.push_back(fmt::format("and {} more", unused.size() - kNamed));
  throw std::logic_error(
      fmt::format("{} of {} parameters got no gradient in this backward: {}. The loss must depend "
                  "on all of them, in this backward and in none inside of it (activation "
                  "checkpointing), or set DataParallelOptions::find_unused_parameters",
                  unused.size(), parameters, fmt::join(names, ", ")));
}

}  // namespace troupe::train
