#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include <troupe/cluster.hpp>
#include <troupe/errors.hpp>

#include "commands.hpp"
#include "config/name.hpp"
#include "growth/grow_after.hpp"
#include "node/limits/gpus.hpp"
#include "os/machine.hpp"
#include "output.hpp"
#include "plan/environment.hpp"
#include "plan/needs.hpp"
#include "run/launch.hpp"

namespace troupe::cli {
namespace {

launch::LaunchOptions launch_options(const RunArguments& arguments) {
  launch::LaunchOptions options;
  options.arguments = arguments.program;
  options.size = launch::parse_gang_size(arguments.size.empty() ? "1" : arguments.size);
  options.size_given = !arguments.size.empty();
  options.per_node = arguments.per_node;
  options.cpus = arguments.cpus;
  options.gpus = arguments.gpus < 0 ? (options.size.every_gpu ? 1 : 0) : arguments.gpus;
  options.memory_gb = arguments.memory_gb;
  options.labels = labels_of(arguments.labels);
  options.strategy = launch::strategy_named(arguments.strategy).value_or(Strategy::Pack);
  options.max_restarts = arguments.max_restarts;
  options.grow_after_s =
      launch::grow_after_s(arguments.grow_after, options.size, arguments.max_restarts);
  options.timeout_s = arguments.timeout;
  options.grace_s = arguments.grace;
  options.variables = variables_of(arguments.environment);
  options.own_environment = !arguments.no_environment;
  options.directory = working_directory();
  options.output = {arguments.log_directory, arguments.tee, arguments.quiet};
  options.isolate_gpus = arguments.isolate_gpus;
  options.workdir = arguments.workdir;
  options.attached_file = arguments.attached_file;
  options.result_file = arguments.result_file;
  options.summary_file = arguments.summary_file;
  return options;
}

int ranks_on_this_machine(const launch::LaunchOptions& options) {
  if (options.size.every_gpu)
    return static_cast<int>(node::find_gpus(std::getenv("CUDA_VISIBLE_DEVICES")).size());
  return options.per_node > 0 && !options.size_given ? options.per_node : options.size.most;
}

/// This machine alone is one node.
void refuse_other_nodes(const launch::LaunchOptions& options) {
  const auto& size = options.size;
  const auto refuse = [](const std::string& what, const std::string& instead) {
    raise({.kind = Failure::Kind::Impossible,
           .message = fmt::format("{}, and without a cluster this machine is the only one: {}, or "
                                  "--address of a cluster with as many",
                                  what, instead)});
  };
  if (size.every_gpu || !options.size_given) return;
  const int least = launch::least_ranks(size, options.per_node);
  if (least > size.most) return;  // they cannot be dealt out at all
  if (options.per_node > 0 && least > options.per_node) {
    refuse(fmt::format("{} ranks with {} on each node (--per-node) need more than one node", least,
                       options.per_node),
           fmt::format("give --per-node {}", least));
  }
  if (options.strategy == Strategy::StrictSpread && size.least > 1 && options.per_node == 0) {
    refuse(fmt::format("{} ranks on nodes of their own (--strategy strict-spread) need as many "
                       "nodes",
                       size.least),
           "give another --strategy");
  }
}

/// On this machine alone ranks are what was asked for, as with any launcher: its cores are shared
/// out, and where there are more ranks than cores they take turns. But a rank's own CPUs are what its
/// libraries make threads for: it cannot have more than there are.
void fit_to_this_machine(launch::LaunchOptions& options, InitOptions& init) {
  const auto cores = os::usable_cpus();
  if (options.cpus > std::max(1.0, cores)) {
    raise({.kind = Failure::Kind::Impossible,
           .message = fmt::format("a rank is to have {:g} CPUs, and this machine has {:g}: give a "
                                  "smaller --cpus, or --address of a cluster with larger machines",
                                  options.cpus, cores)});
  }
  refuse_other_nodes(options);
  const int ranks = ranks_on_this_machine(options);
  if (options.cpus < 0) options.cpus = launch::cpus_of_ranks_here(ranks, cores);
  init.cpus = std::max(cores, std::ceil(ranks * options.cpus));
}

}  // namespace

int run_run(const RunArguments& arguments) try {
  auto options = launch_options(arguments);
  InitOptions init{.address = arguments.address, .token_file = arguments.token_file};
  init.name = std::filesystem::path(arguments.program.front()).filename().string();
  if (!config::why_no_name(init.name).empty()) init.name = "troupe run";
  if (is_private(arguments.address)) fit_to_this_machine(options, init);
  auto cluster = troupe::init(init);
  return launch::launch(options, cluster);
} catch (const std::exception& error) {
  say(stderr, fmt::format("troupe run: {}\n", error.what()));
  return launch::kTroupeFailed;
}

}  // namespace troupe::cli
