#include "parallel/parameter_watch.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace troupe::train {

// Delegates, so that the destructor runs where a hook is refused half-way.
ParameterWatch::ParameterWatch(std::vector<NamedTensor> parameters) : ParameterWatch() {
  for (auto& parameter : parameters) {
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

}  // namespace troupe::train
