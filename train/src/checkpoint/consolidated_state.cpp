#include "checkpoint/consolidated_state.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "checkpoint/state.hpp"
#include "zero/preparing.hpp"

namespace troupe::train {

std::vector<MasterWeight> consolidated_masters(
    const std::vector<at::Tensor>& parameters, const InitialMasters& initial,
    const std::vector<std::weak_ptr<OptimizerParts>>& optimizers,
    const Communicators& communicators) {
  std::vector<MasterWeight> found;
  for (const auto& parameter : parameters) {
    if (auto value = initial.find(parameter); value.defined())
      found.emplace_back(parameter, std::move(value));
  }
  if (optimizers.empty()) return found;  // and the communicators may not be made
  std::vector<std::shared_ptr<OptimizerParts>> parts;
  for (const auto& each : optimizers) parts.push_back(each.lock());
  std::vector<std::int64_t> live(parts.size());
  std::ranges::transform(parts, live.begin(), [](const auto& each) { return each ? 1 : 0; });
  communicators.control().all_reduce(std::span(live), ReduceOp::Min);
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (live[i] == 0) continue;
    for (auto& master : parts[i]->whole_masters(parameters)) found.push_back(std::move(master));
  }
  return found;
}

ConsolidatedState::ConsolidatedState(const Models& models, const Optimizers& optimizers, int rank)
    : models_(models), optimizers_(optimizers), rank_(rank), whole_optimizers_(optimizers.size()) {
  for (const auto& model : models) {
    for (auto& parameter : model->parameters()) parameters_.push_back(std::move(parameter));
  }
}

void ConsolidatedState::gather_optimizers(const ContextOptions& options) {
  for (std::size_t i = 0; i < optimizers_.size(); ++i) {
    if (auto* parts = parts_of(*optimizers_[i], options))
      whole_optimizers_[i] = parts->whole(*optimizers_[i]);
  }
}

void ConsolidatedState::gather_parameters(Gathering& gathering,
                                          const std::vector<std::shared_ptr<Flat>>& buckets) {
  copies_.emplace(gathering, buckets, rank_ == 0);
}

void ConsolidatedState::show_masters(const std::vector<MasterWeight>& masters) {
  in_float32_.emplace(parameters_, masters);
}

void ConsolidatedState::save(const PendingCheckpoint& checkpoint) const {
  for (std::size_t i = 0; i < models_.size(); ++i)
    save_module(*models_[i], checkpoint.file(fmt::format("model{}.pt", i)));
  for (std::size_t i = 0; i < optimizers_.size(); ++i) {
    save_optimizer(whole_optimizers_[i] ? *whole_optimizers_[i] : *optimizers_[i],
                   checkpoint.file(fmt::format("optimizer{}.pt", i)));
  }
}

}  // namespace troupe::train
