#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <troupe/train/plan.hpp>

#include "plan/words.hpp"

namespace troupe::train {
namespace {

std::string precision_in_words(const MixedPrecision& precision) {
  std::string type = "float32";
  if (precision.type == MixedPrecision::Type::BFloat16) type = "bfloat16";
  if (precision.type == MixedPrecision::Type::Float16) type = "float16";
  if (precision.master_weights) return type + " with master weights";
  return type == "float32" ? type : type + " by autocast";
}

bool is_for_gpus(const Plan& plan) { return plan.options.device == PlanOptions::Device::Gpu; }

std::string heading(const Plan& plan) {
  const auto& options = plan.options;
  const auto share = options.main_memory / static_cast<std::uint64_t>(options.ranks_per_node);
  auto text =
      fmt::format("{} trained parameters, {}, on {} rank{}, {} on each node\n",
                  count_in_words(plan.model.trained), precision_in_words(options.mixed_precision),
                  options.ranks, options.ranks == 1 ? "" : "s", options.ranks_per_node);
  text += fmt::format("each rank: {}{} GB{}, of which {} GB for activations",
                      is_for_gpus(plan) ? "a GPU of " : "", in_gb(options.device_memory),
                      is_for_gpus(plan) ? "" : " of main memory", in_gb(options.activations));
  if (is_for_gpus(plan)) text += fmt::format("; {} GB of main memory", in_gb(share));
  return text + "\n\n";
}

/// On CPUs all that a rank has is in main memory, so a column for it would say nothing.
std::vector<std::string> titles_of(const Plan& plan) {
  if (!is_for_gpus(plan)) {
    return {"GB of each rank", "parameters", "gradients", "optimizer", "passing", "total", "fits"};
  }
  return {"GB of each rank", "parameters", "gradients",   "optimizer",
          "passing",         "on GPU",     "main memory", "fits"};
}

std::vector<std::string> cells_of(const Plan& plan, const PlannedStrategy& strategy) {
  const auto& device = strategy.device;
  std::vector<std::string> cells{name_of(strategy.zero),      in_gb(device.parameters),
                                 in_gb(device.gradients),     in_gb(device.optimizer),
                                 in_gb(device.passing),       in_gb(device.total()),
                                 strategy.fits ? "yes" : "no"};
  if (is_for_gpus(plan)) cells.insert(cells.end() - 1, in_gb(strategy.main.total()));
  return cells;
}

/// The first column begins at the left, the others end at the right.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:>{}}", row[i], widths[i]);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string Plan::text() const {
  std::vector<std::vector<std::string>> rows{titles_of(*this)};
  for (const auto& strategy : strategies) rows.push_back(cells_of(*this, strategy));
  return heading(*this) + table(rows) + "\n" + advice + "\n";
}

}  // namespace troupe::train
