#include "zero/gathering/whole_copies.hpp"

#include <ATen/core/grad_mode.h>

namespace troupe::train {

// Delegates, so that the destructor runs where a bucket does not come.
WholeCopies::WholeCopies(Gathering& gathering, const std::vector<std::shared_ptr<Flat>>& buckets,
                         bool keeps)
    : WholeCopies() {
  const at::NoGradGuard no_grad;
  for (const auto& bucket : buckets) {
    gathering.bring(*bucket);
    if (!keeps) continue;
    const NobodyTold quietly;
    for (const auto& parameter : bucket->parameters()) {
      auto tensor = parameter.tensor;
      originals_.emplace_back(tensor, tensor.detach());
      tensor.set_data(tensor.detach().clone());
    }
  }
  gathering.meet();
}

WholeCopies::~WholeCopies() {
  const at::NoGradGuard no_grad;
  const NobodyTold quietly;
  for (auto& [tensor, original] : originals_) tensor.set_data(original);
}

}  // namespace troupe::train
