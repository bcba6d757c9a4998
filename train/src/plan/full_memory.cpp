#include "plan/full_memory.hpp"

#include <algorithm>
#include <exception>
#include <string>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include "plan/machine.hpp"
#include "plan/memory.hpp"
#include "plan/words.hpp"

namespace troupe::train {
namespace {

/// What takes less of the device than the training at hand, and fits by the plan.
const PlannedStrategy* next_smaller(const Plan& made, const PlannedStrategy& used) {
  for (const auto& strategy : made.strategies) {
    if (strategy.fits && strategy.device.total() < used.device.total()) return &strategy;
  }
  return nullptr;
}

std::string advice_for(const ModelSize& model, int ranks, const ContextOptions& options,
                       c10::Device device) {
  const auto made = plan(model, {.ranks = ranks,
                                 .device = PlanOptions::Device::Gpu,
                                 .device_memory = device_memory_by_libtorch(device),
                                 .mixed_precision = options.mixed_precision,
                                 .data_parallel = options.data_parallel});
  const auto used = predict(made.model, made.options, options.zero);
  auto text = fmt::format(
      "By train::plan, with Adam on {}, {} takes {} GB of the {} GB of {}, beside activations.",
      ranks == 1 ? "one rank" : fmt::format("{} ranks of one node", ranks), code_of(options.zero),
      in_gb(used.device.total()), in_gb(made.options.device_memory), device.str());
  if (const auto* smaller = next_smaller(made, used)) {
    text += fmt::format(" Use {}, which takes {} GB{}.", code_of(smaller->zero),
                        in_gb(smaller->device.total()), used.fits ? ", or a smaller batch" : "");
  } else if (used.fits) {
    text += " Nothing takes less of it: use a smaller batch.";
  } else {
    text += " " + made.advice;
  }
  return text;
}

}  // namespace

void add_size(ModelSize& all, const torch::nn::Module& model) {
  const auto size = size_of(model);
  all.trained += size.trained;
  all.largest = std::max(all.largest, size.largest);
  all.other_bytes += size.other_bytes;
}

void advise_where_memory_is_full(const ModelSize& models, int ranks, const ContextOptions& options,
                                 c10::Device device) noexcept {
  try {
    try {
      throw;
    } catch (c10::OutOfMemoryError& error) {
      if (models.trained > 0) error.add_context(advice_for(models, ranks, options, device));
    }
  } catch (...) {
    // Of another kind, or there is no advice: the error stays as it is.
  }
}

}  // namespace troupe::train
