#include <troupe/train/run.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe::train::detail {

void check(const RunOptions& options) {
  if (options.workers < 1)
    throw std::invalid_argument(
        fmt::format("RunOptions::workers is {}; it must be at least 1", options.workers));
  if (options.where == Where::InProcess && options.workers != 1) {
    throw std::invalid_argument(fmt::format(
        "RunOptions::workers is {}; a run in this process has one rank", options.workers));
  }
}

Cluster private_cluster(const RunOptions& options) {
  InitOptions init;
  init.name = options.name;
  // The ranks may be more than the cores: a run on one machine is for trying things out.
  const double each =
      options.each.cpus == RankOptions{}.cpus ? 1 : std::max(options.each.cpus, 0.0);
  init.cpus = std::max(1.0, std::ceil(options.workers * each));
  for (const auto& [name, amount] : options.each.resources)
    init.resources.emplace_back(name, amount * options.workers);
  return troupe::init(std::move(init));
}

troupe::detail::RunInfo info_of(const RunOptions& options, const ProgressBar& bar) {
  return {.storage = options.storage,
          .restore_from = options.restore_from,
          .name = options.name,
          .seed = options.seed,
          .settings = options.context,
          .progress_every = bar.every()};
}

}  // namespace troupe::train::detail
