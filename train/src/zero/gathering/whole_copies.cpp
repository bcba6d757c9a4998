#include "zero/gathering/whole_copies.hpp"

#include <ATen/core/grad_mode.h>

namespace troupe::train {

WholeCopies::WholeCopies(Gathering& gathering, const std::vector<std::shared_ptr<Flat>>& buckets,
                         bool keeps) {
  const at::NoGradGuard no_grad;
  for (const auto& bucket : buckets) {
    gathering.bring(*bucket);
    if (!keeps) continue;
    const NobodyTold quietly;
    for (const auto& parameter : bucket->parameters())
      shown_.show(parameter.tensor, parameter.tensor.detach().clone());
  }
  gathering.meet();
}

}  // namespace troupe::train
