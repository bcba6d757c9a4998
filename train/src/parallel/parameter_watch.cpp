#include "parallel/parameter_watch.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace troupe::train {

ParameterWatch::ParameterWatch(std::vector<NamedTensor> parameters) {
  for (auto& parameter : parameters) {
    // No other type can want a gradient, now or later.
    if (parameter.tensor.is_floating_point() || parameter.tensor.is_complex())
      watch(std::move(parameter));
  }
}

ParameterWatch::~ParameterWatch() {
  for (const auto& watched : watched_) watched->variable.remove_hook(watched->hook);
}

void ParameterWatch::watch(NamedTensor parameter) {
  auto watched = std::make_unique<Watched>(
      Watched{std::move(parameter.name), std::move(parameter.tensor), {}});
  auto& variable = watched->variable;
  const bool frozen = !variable.requires_grad();
  if (!frozen) watched->accumulator = torch::autograd::impl::grad_accumulator(variable);
  // Only what wants a gradient takes a hook, and keeps it when it is frozen.
  if (frozen) variable.requires_grad_(true);
  watched->hook =
      variable.register_hook([this, at = watched.get()](const at::Tensor&) { check(*at); });
  if (frozen) variable.requires_grad_(false);
  watched_.push_back(std::move(watched));
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
