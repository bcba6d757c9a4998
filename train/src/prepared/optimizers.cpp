#include "prepared/optimizers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>

#include "log/log.hpp"
#include "parallel/agreement.hpp"
#include "precision/clip.hpp"
#include "prepared/learning_rates.hpp"
#include "zero/preparing.hpp"

namespace troupe::train {
namespace {

[[noreturn]] void refuse_unknown_kind(const torch::optim::Optimizer& optimizer,
                                      const ZeroOptions& zero) {
  const auto name = OptimizerKind::name_of(optimizer);
  throw std::invalid_argument(
      zero.stage > 0
          ? fmt::format("ZeRO cannot cut the state of a {}: ContextOptions::zero is for {}; use "
                        "one of those, or stage 0",
                        name, OptimizerKind::known())
          : fmt::format("a {} has no master weights: mixed_precision.master_weights is for {}; "
                        "use one of those, or train without",
                        name, OptimizerKind::known()));
}

/// Of such an optimizer each rank would train alone, with the gradients of its own batches.
void refuse_unprepared(const torch::optim::Optimizer& optimizer, const ParameterNames& prepared) {
  std::size_t count = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (prepared.contains(parameter.unsafeGetTensorImpl())) return;
      ++count;
    }
  }
  if (count == 0) return;
  throw std::invalid_argument(fmt::format(
      "the optimizer has {} parameter{}, and none is of a model that was prepared: their gradients "
      "would not be averaged, and each rank would train alone. Prepare the model before its "
      "optimizer: `auto model = ctx.prepare(...)`, and make the optimizer with its parameters",
      count, count == 1 ? "" : "s"));
}

}  // namespace

PreparedOptimizers::PreparedOptimizers(const ContextRank& here,
                                       CommunicatorsOnDemand& communicators, PreparedModels& models,
                                       Restoring* restoring, std::shared_ptr<LossScaler> scaler)
    : here_(here),
      communicators_(communicators),
      models_(models),
      restoring_(restoring),
      scaler_(std::move(scaler)) {}

detail::Preparation PreparedOptimizers::prepare(torch::optim::Optimizer& optimizer) {
  models_.meet();
  const bool has_parts = train::has_parts(here_.options);
  const auto* kind = OptimizerKind::of(optimizer);
  if (has_parts && kind == nullptr) refuse_unknown_kind(optimizer, here_.options.zero);
  if (scaler_ && dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr) {
    throw std::invalid_argument(
        "an LBFGS computes the loss several times in each step, and MixedPrecision::Type::Float16 "
        "looks at the gradients of one: use BFloat16, or another optimizer");
  }
  // With parts each parameter has to be of a prepared model, for which cut() looks.
  if (!has_parts && here_.world_size() > 1) refuse_unprepared(optimizer, models_.parameter_names());
  const auto number = prepared_;
  scale_rates(optimizer);
  if (restoring_ != nullptr) restore_options(optimizer, number);
  auto parts = has_parts ? cut(*kind, optimizer) : nullptr;
  if (restoring_ != nullptr) restoring_->load_state(optimizer, parts.get(), number);
  ++prepared_;
  if (!scaler_) return {.shards = std::move(parts)};
  auto scaling = std::make_shared<OptimizerScaling>(scaler_, parts, communicators_.control());
  scalings_.push_back(scaling);
  return {.shards = std::move(parts), .scaling = std::move(scaling)};
}

void PreparedOptimizers::scale_rates(torch::optim::Optimizer& optimizer) {
  const double scale = scale_of(here_.options.scale_learning_rates, here_.world_size());
  multiply_learning_rates(optimizer, scale);
  if (scale == 1 || here_.rank() != 0 || prepared_ > 0) return;
  log::info(
      fmt::format("learning rates that the program sets are multiplied by {:.4g}, for {} ranks "
                  "(ContextOptions::scale_learning_rates)",
                  scale, here_.world_size()));
}

void PreparedOptimizers::restore_options(torch::optim::Optimizer& optimizer, std::size_t number) {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> own;
  for (const auto& group : optimizer.param_groups()) own.push_back(group.options().clone());
  restoring_->load_options(optimizer, number, models_.parameter_names(), here_.device);
  if (!here_.member.reconfigured()) {
    const double now = scale_of(here_.options.scale_learning_rates, here_.world_size());
    multiply_rates_of_groups(optimizer, now / restoring_->manifest().learning_rate_scale);
    return;
  }
  // The checkpoint has the options of who wrote it. The function has just made the optimizer with
  // those of its configuration.
  for (std::size_t group = 0; group < own.size(); ++group)
    optimizer.param_groups()[group].set_options(std::move(own[group]));
}

/// nullptr: this rank has the whole optimizer, which updates the parameters themselves.
std::shared_ptr<OptimizerParts> PreparedOptimizers::cut(const OptimizerKind& kind,
                                                        torch::optim::Optimizer& optimizer) {
  auto groups = named_groups(optimizer, models_.parameter_names(), here_.device);
  const int stage = here_.options.zero.stage;
  const bool is_cut = stage > 0 && here_.world_size() > 1;
  auto* initial = models_.masters();
  const Flat::Masters masters{
      .in_float32 = initial != nullptr,
      .in_main_memory = here_.options.zero.offload_optimizer && !here_.device.is_cpu()};
  if (!is_cut && !masters.in_float32 && !masters.in_main_memory) return nullptr;
  auto& comm = communicators_.device();
  check_optimizers_agree(comm, kind.name(), groups, here_.device);
  auto& control = communicators_.control();
  auto parts =
      is_cut && stage >= 2
          ? std::make_shared<OptimizerParts>(kind, std::move(groups), models_.cut_models(), comm,
                                             control, models_.gathering())
          : std::make_shared<OptimizerParts>(kind, std::move(groups), comm, control, is_cut);
  if (masters.in_float32 || masters.in_main_memory) parts->keep_masters(masters, initial);
  if (initial != nullptr) have_masters_.push_back(parts);
  return parts;
}

at::Tensor PreparedOptimizers::scaled(const at::Tensor& loss) {
  if (!scaler_) return loss;
  if (std::ranges::all_of(scalings_, [](const auto& each) { return each.expired(); })) {
    throw std::logic_error(
        "a loss is scaled, and there is no prepared optimizer that would divide its gradients: "
        "write `auto optimizer = ctx.prepare(...)` before the first loss, with `auto`");
  }
  return loss * scaler_->scaled();
}

double PreparedOptimizers::clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm) {
  models_.meet();
  if (scaler_) scaling_of(optimizer).unscale(optimizer);
  auto* parts = train::parts_of(optimizer, here_.options);
  if (parts != nullptr && parts->has_gradients()) return parts->clip_gradients(max_norm);
  if (models_.masters() != nullptr) {
    const auto gradients = gradients_of(optimizer);
    return clip(gradients, std::sqrt(sum_of_squares(gradients)), max_norm);
  }
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups())
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  return torch::nn::utils::clip_grad_norm_(parameters, max_norm);
}

std::vector<OptimizerParts*> PreparedOptimizers::parts_of(
    const std::vector<const torch::optim::Optimizer*>& optimizers) const {
  if (scaler_) {
    for (const auto* optimizer : optimizers) scaling_of(*optimizer);  // throws
  }
  std::vector<OptimizerParts*> parts;
  for (const auto* optimizer : optimizers)
    parts.push_back(train::parts_of(*optimizer, here_.options));
  return parts;
}

std::vector<std::shared_ptr<OptimizerParts>> PreparedOptimizers::with_masters() const {
  std::vector<std::shared_ptr<OptimizerParts>> parts;
  for (const auto& each : have_masters_) parts.push_back(each.lock());
  if (parts.empty()) return parts;
  std::vector<std::int64_t> live(parts.size());
  std::ranges::transform(parts, live.begin(), [](const auto& each) { return each ? 1 : 0; });
  if (here_.world_size() > 1) communicators_.control().all_reduce(std::span(live), ReduceOp::Min);
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (live[i] == 0) parts[i] = nullptr;
  }
  std::erase(parts, nullptr);
  return parts;
}

}  // namespace troupe::train
