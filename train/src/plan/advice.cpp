#include "plan/advice.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/memory.hpp"
#include "plan/words.hpp"

namespace troupe::train {
namespace {

constexpr int kMostRanks = 65'536;

bool has_gpus(const PlanOptions& options) { return options.device == PlanOptions::Device::Gpu; }

/// Of its node's main memory.
std::uint64_t share_of_rank(const PlanOptions& options) {
  return options.main_memory / static_cast<std::uint64_t>(options.ranks_per_node);
}

std::optional<ZeroOptions> fastest_that_fits(const ModelSize& model, const PlanOptions& options) {
  for (const auto& strategy : predict_all(model, options)) {
    if (strategy.fits) return strategy.zero;
  }
  return std::nullopt;
}

std::optional<ZeroOptions> fastest_on(int ranks, const ModelSize& model, PlanOptions options) {
  options.ranks = ranks;
  return fastest_that_fits(model, options);
}

std::string how_to_use(const Plan& plan, const PlannedStrategy& strategy) {
  const auto& options = plan.options;
  auto text = fmt::format(
      "Use {}, the fastest that fits: it takes {} GB of the {} GB that {} has, beside {} GB for "
      "activations",
      code_of(strategy.zero), in_gb(strategy.device.total()), in_gb(options.device_memory),
      has_gpus(options) ? "each rank's GPU" : "each rank", in_gb(options.activations));
  if (strategy.zero.offload_optimizer) {
    text += fmt::format(", and {} GB of the {} GB of main memory that each rank has",
                        in_gb(strategy.main.total()), in_gb(share_of_rank(options)));
  }
  return text + ".";
}

/// By how many times what is needed is more than what is there.
double excess(const PlannedStrategy& strategy, const PlanOptions& options) {
  const auto times = [](std::uint64_t needed, std::uint64_t there) {
    return static_cast<double>(needed) / static_cast<double>(std::max<std::uint64_t>(there, 1));
  };
  const auto room = options.device_memory - std::min(options.device_memory, options.activations);
  return std::max(times(strategy.device.total(), room),
                  times(strategy.main.total(), share_of_rank(options)));
}

std::string what_is_missing(const Plan& plan) {
  const auto& options = plan.options;
  const auto& nearest = *std::ranges::min_element(
      plan.strategies, {},
      [&](const PlannedStrategy& strategy) { return excess(strategy, options); });
  std::vector<std::string> missing;
  const auto lacks = [&](const char* what, std::uint64_t needed, std::uint64_t there) {
    if (needed <= there) return;
    missing.push_back(fmt::format("it needs {} GB {}, which is {} GB too much", in_gb(needed), what,
                                  in_gb(needed - there)));
  };
  lacks(has_gpus(options) ? "on each rank's GPU, activations included"
                          : "of main memory for each rank, activations included",
        nearest.device.total() + options.activations, options.device_memory);
  lacks("of main memory for each rank", nearest.main.total(), share_of_rank(options));
  return fmt::format("Nothing fits. The strategy nearest to fitting is {}: {}.",
                     name_of(nearest.zero), fmt::join(missing, ", and "));
}

/// What does not become smaller where there are more ranks.
std::string why_ranks_do_not_help(const Plan& plan) {
  auto options = plan.options;
  options.ranks = kMostRanks;
  const auto smallest = predict_all(plan.model, options).back();
  const auto needed = options.activations + plan.model.other_bytes + smallest.device.passing;
  const auto text = fmt::format("More ranks do not help: nothing fits on up to {} of them",
                                count_in_words(kMostRanks));
  if (options.activations >= options.device_memory)
    return fmt::format(
        "{}, as activations alone take {} GB of the {} GB that each rank's device has.", text,
        in_gb(options.activations), in_gb(options.device_memory));
  if (needed <= options.device_memory) return text + ".";
  return fmt::format(
      "{}, as activations, frozen parameters, buffers and the buckets of the largest parameter "
      "take "
      "{} GB of each rank's device whatever their number.",
      text, in_gb(needed));
}

std::string how_many_ranks(const Plan& plan) {
  const auto enough = enough_ranks(plan.model, plan.options);
  if (!enough) return why_ranks_do_not_help(plan);
  return fmt::format("On {} ranks, {} on each node, with the same memory {} would fit.",
                     enough->ranks, plan.options.ranks_per_node, code_of(enough->zero));
}

/// "" where it would not help.
std::string whether_smaller_type_helps(const Plan& plan) {
  auto options = plan.options;
  auto& precision = options.mixed_precision;
  if (precision.master_weights) return "";
  precision.master_weights = true;
  precision.type = MixedPrecision::Type::BFloat16;
  const auto zero = fastest_that_fits(plan.model, options);
  if (!zero) return "";
  return fmt::format(
      " With .mixed_precision = {{.type = train::MixedPrecision::Type::BFloat16, .master_weights = "
      "true}}, {} would fit on the ranks that there are.",
      code_of(*zero));
}

/// "" where it is enough.
std::string whether_it_can_be_made(const Plan& plan) {
  const auto share = share_of_rank(plan.options);
  if (plan.making <= share) return "";
  return fmt::format(
      " While the model is made and prepared, each rank takes {} GB of main memory, and its share "
      "is {} GB: have fewer ranks on each node, or nodes with more main memory.",
      in_gb(plan.making), in_gb(share));
}

}  // namespace

std::optional<EnoughRanks> enough_ranks(const ModelSize& model, const PlanOptions& options) {
  int too_few = options.ranks;
  int enough = too_few;
  std::optional<ZeroOptions> zero;
  while (!zero && enough < kMostRanks) {
    too_few = enough;
    enough = std::min(enough, kMostRanks / 2) * 2;
    zero = fastest_on(enough, model, options);
  }
  if (!zero) return std::nullopt;
  while (enough - too_few > 1) {
    const int between = too_few + (enough - too_few) / 2;
    if (const auto found = fastest_on(between, model, options)) {
      enough = between;
      zero = found;
    } else {
      too_few = between;
    }
  }
  return EnoughRanks{.ranks = enough, .zero = *zero};
}

std::string advice_on(const Plan& plan) {
  const auto text = plan.recommended
                        ? how_to_use(plan, plan.strategies[*plan.recommended])
                        : fmt::format("{} {}{}", what_is_missing(plan), how_many_ranks(plan),
                                      whether_smaller_type_helps(plan));
  return text + whether_it_can_be_made(plan);
}

}  // namespace troupe::train
