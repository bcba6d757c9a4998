#include "checkpoint/kept_checkpoints.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::train {
namespace {

bool has(const Metrics& metrics, const std::string& name) {
  return std::ranges::any_of(metrics, [&](const auto& metric) { return metric.name == name; });
}

}  // namespace

KeptCheckpoints::KeptCheckpoints(CheckpointOptions options) : options_(std::move(options)) {
  const auto& [keep_best, metric, best] = options_;
  if (keep_best < 0)
    throw std::invalid_argument(
        fmt::format("ContextOptions::checkpoints.keep_best is {}: give the number of checkpoints "
                    "that stay, or 0 for all of them",
                    keep_best));
  if (keep_best > 0 && metric.empty())
    throw std::invalid_argument(
        "ContextOptions::checkpoints.keep_best is given without a metric, by which checkpoints are "
        "good: set .metric to a name that your reports have");
  if (keep_best == 0 && !metric.empty())
    throw std::invalid_argument(
        "ContextOptions::checkpoints.metric is given, and keep_best is 0, so that all checkpoints "
        "stay: set .keep_best too");
}

void KeptCheckpoints::check(const Metrics& metrics) const {
  if (options_.keep_best == 0 || has(metrics, options_.metric)) return;
  std::vector<std::string> names;
  for (const auto& metric : metrics) names.push_back(metric.name);
  throw std::invalid_argument(fmt::format(
      "a checkpoint is reported without the metric '{}', by which "
      "ContextOptions::checkpoints keeps the best; the report has {}",
      options_.metric, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

std::vector<std::filesystem::path> KeptCheckpoints::add(const std::filesystem::path& checkpoint,
                                                        const Metrics& metrics) {
  if (options_.keep_best == 0) return {};
  auto value = metrics.at(options_.metric);
  if (options_.best == CheckpointOptions::Best::Highest) value = -value;
  if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  std::erase_if(kept_, [&](const auto& each) { return each.checkpoint == checkpoint; });
  kept_.push_back({checkpoint, value});
  std::vector<std::size_t> order(kept_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return kept_[i].value; });
  std::vector<bool> stays(kept_.size());
  stays.back() = true;
  for (std::size_t i = 0; i < order.size() && i < static_cast<std::size_t>(options_.keep_best); ++i)
    stays[order[i]] = true;
  std::vector<std::filesystem::path> removed;
  std::vector<Kept> kept;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (stays[i])
      kept.push_back(std::move(kept_[i]));
    else
      removed.push_back(std::move(kept_[i].checkpoint));
  }
  kept_ = std::move(kept);
  return removed;
}

}  // namespace troupe::train
