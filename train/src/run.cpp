#include <troupe/train/run.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include <troupe/detail/cluster_nodes.hpp>
#include <troupe/detail/failure.hpp>

#include "config/name.hpp"
#include "context_options.hpp"
#include "log/log.hpp"
#include "node/limits/gpus.hpp"
#include "progress/progress_line.hpp"

namespace troupe::train::detail {
namespace {

// Of the head, which answers at once.
constexpr std::chrono::seconds kForAnswer{30};

double gpus_of_rank(const RunOptions& options) {
  return options.each.gpus == 0 ? 1 : options.each.gpus;
}

/// How many ranks have room on so many GPUs of one node.
int ranks_on(double gpus, double of_rank) {
  // A rank that has less than one GPU has that of one GPU.
  const double ranks =
      of_rank < 1 ? std::floor(gpus) * std::floor(1 / of_rank) : std::floor(gpus / of_rank);
  return static_cast<int>(ranks);
}

void check_workers(const RunOptions& options) {
  if (options.workers != AllGpus) {
    if (options.workers >= 1) return;
    throw std::invalid_argument(fmt::format(
        "RunOptions::workers is {}; it must be at least 1, or AllGpus", options.workers));
  }
  if (!(options.each.gpus >= 0) || !std::isfinite(options.each.gpus)) {
    throw std::invalid_argument(
        fmt::format("RunOptions::each.gpus is {}; a rank cannot have that", options.each.gpus));
  }
  if (!options.each.labels.empty() || !options.each.resources.empty()) {
    throw std::invalid_argument(
        "RunOptions::workers is AllGpus, which counts the GPUs of all nodes, and RunOptions::each "
        "has labels or resources that not every node has: give the number of ranks");
  }
}

void check_debugger(const RunOptions& options) {
  const auto& [rank, wait] = options.debugger;
  if (rank >= 0 && options.where == Where::InProcess) {
    throw std::invalid_argument(
        "RunOptions::debugger is for ranks in processes of their own; to debug a run in this "
        "process, start the program under a debugger");
  }
  if (rank >= 0 && options.workers != AllGpus && rank >= options.workers) {
    throw std::invalid_argument(fmt::format(
        "RunOptions::debugger.rank is {}; the run has ranks 0 to {}", rank, options.workers - 1));
  }
  if (rank >= 0 && wait.count() <= 0) {
    throw std::invalid_argument(
        fmt::format("RunOptions::debugger.wait is {} ms; it must be above 0", wait.count()));
  }
}

int gpus_of_this_machine(double of_rank) {
  const auto found = node::find_gpus(std::getenv("CUDA_VISIBLE_DEVICES")).size();
  return ranks_on(static_cast<double>(found), of_rank);
}

}  // namespace

void check(const RunOptions& options) {
  check_workers(options);
  check_debugger(options);
  if (options.where == Where::InProcess && options.workers != 1) {
    throw std::invalid_argument(
        fmt::format("RunOptions::workers is {}; a run in this process has one rank",
                    options.workers == AllGpus ? "AllGpus" : fmt::to_string(options.workers)));
  }
}

Cluster private_cluster(const RunOptions& options) {
  InitOptions init;
  init.name = options.name;
  const int workers =
      options.workers == AllGpus ? gpus_of_this_machine(gpus_of_rank(options)) : options.workers;
  // The ranks may be more than the cores: a run on one machine is for trying things out.
  const double each =
      options.each.cpus == RankOptions{}.cpus ? 1 : std::max(options.each.cpus, 0.0);
  init.cpus = std::max(1.0, std::ceil(workers * each));
  for (const auto& [name, amount] : options.each.resources)
    init.resources.emplace_back(name, amount * workers);
  return troupe::init(std::move(init));
}

RunOptions with_counted_workers(RunOptions options) {
  if (options.workers != AllGpus) return options;
  options.each.gpus = gpus_of_rank(options);
  const auto answer = troupe::detail::ask_for_nodes();
  if (answer) troupe::detail::get_object(answer, kForAnswer);
  const auto nodes = troupe::detail::nodes_in(answer);
  options.workers = 0;
  for (const auto& node : nodes) options.workers += ranks_on(node.gpus, options.each.gpus);
  if (options.workers > 0) {
    check_debugger(options);
    return options;
  }
  raise({.kind = Failure::Kind::Impossible,
         .message = fmt::format(
             "RunOptions::workers is AllGpus, and none of the cluster's {} nodes has the {:.4g} "
             "GPUs of a rank: start `troupe worker` where there are GPUs, or give a number of "
             "ranks",
             nodes.size(), options.each.gpus)});
}

void raise_never_placed(const Impossible& refused, const RunOptions& options) {
  auto failure = refused.failure();
  failure.message = fmt::format(
      "the cluster can never hold the ranks of the run (RunOptions::workers = {}, each with what "
      "RunOptions::each asks for): {}. Ask for less there, or start nodes that have it",
      options.workers, failure.message);
  throw Impossible(std::move(failure));
}

troupe::detail::RunInfo info_of(const RunOptions& options, const ProgressBar& bar) {
  return {.storage = options.storage,
          .restore_from = options.restore_from,
          .name = options.name,
          .seed = options.seed,
          .settings = settings_of_run(options.context),
          .progress_every = bar.every(),
          .debugger_rank = options.debugger.rank,
          .debugger_wait = options.debugger.wait};
}

Verdict take(const troupe::detail::TrialEvent& event, const RunOptions& options,
             RunOutcome& outcome, ProgressBar& bar) {
  bar.on_event(event);
  if (event.kind != troupe::detail::TrialEvent::Kind::Report) return Verdict::Continue;
  outcome.history.push_back({event.index, event.metrics, event.checkpoint, event.elapsed_s});
  if (!event.checkpoint.empty()) outcome.checkpoint = event.checkpoint;
  if (!options.on_report) {
    if (options.where == Where::InProcess) bar.draw();  // nobody else does
    return Verdict::Continue;
  }
  bar.hide();
  const auto verdict = options.on_report(outcome.history.back());
  bar.draw();
  return verdict;
}

void close(const troupe::detail::TrialEvent& event, const RunOptions& options,
           RunOutcome& outcome) {
  if (outcome.checkpoint.empty()) outcome.checkpoint = options.restore_from;
  outcome.seconds = event.elapsed_s;
  outcome.stopped = event.stopped;
  outcome.world_size = options.workers;
  outcome.effective_batch = event.effective_batch;
}

std::string words_of(const RunOutcome& outcome, std::string_view name, std::string_view function) {
  constexpr std::size_t most = 12;
  const auto& [history, checkpoint, seconds, stopped, ranks, batch] = outcome;
  auto words =
      fmt::format("run '{}' {} after {:.1f} s: {} rank{}",
                  name.empty() ? label_of_function(function) : config::printable(std::string(name)),
                  stopped ? "was stopped" : "has ended", seconds, ranks, ranks == 1 ? "" : "s");
  if (batch > 0) words += fmt::format(", {} rows in each step", batch);
  if (history.empty()) return words;
  words +=
      history.size() == 1 ? ", 1 report" : fmt::format(", {} reports; the last", history.size());
  const auto& metrics = history.back().metrics;
  for (std::size_t i = 0; i < metrics.size() && i < most; ++i) {
    words += fmt::format("{} {} {:.5g}", i == 0 ? ":" : ",", config::printable(metrics[i].name),
                         metrics[i].value);
  }
  if (metrics.size() > most) words += ", ...";
  return words;
}

void log_end(const RunOutcome& outcome, std::string_view name, std::string_view function) {
  log::info(words_of(outcome, name, function));
}

}  // namespace troupe::train::detail
