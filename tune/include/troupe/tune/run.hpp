#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/detail/trial_run.hpp>
#include <troupe/tune/context.hpp>
#include <troupe/tune/detail/checkpoints.hpp>
#include <troupe/tune/detail/search.hpp>

namespace troupe::tune {

namespace detail {

/// A request for a gang can not be taken back, so it is made again and again, each for this long.
inline constexpr std::chrono::milliseconds kPlacementSlice{2'000};

template <auto fn>
troupe::Gang<troupe::detail::TrainableWorker<fn>> placed_gang(const Each& each,
                                                              const troupe::detail::trainable_config<fn>& config,
                                                              const RunInfo& info, const Attempt& attempt) {
  const GangOptions wanted{
      .size = each.workers, .each = each.each, .strategy = each.strategy, .timeout = kPlacementSlice};
  while (true) {
    try {
      return troupe::gang<troupe::detail::TrainableWorker<fn>>(wanted, config, info);
    } catch (const TimedOut&) {
      if (attempt.is_over()) throw;
    }
  }
}

template <auto fn>
using WorkerOf = troupe::detail::TrainableWorker<fn>;

/// What every rank of the gang sees. Waits until all are there.
template <auto fn>
GangView view_of(const troupe::Gang<WorkerOf<fn>>& gang, const std::string& marker, const std::string& checkpoint) {
  GangView view;
  for (const auto& rank : gang.template all<&WorkerOf<fn>::look>(marker, CheckpointOrigins::path_of(checkpoint))) {
    view.ranks.push_back(rank.get());
  }
  return view;
}

template <class Worker>
void receive_checkpoint(Worker&, const PackedFolder& folder, const std::string& path) {
  unpack_folder(folder, path);
}

/// -> where each rank reads the checkpoint: where it is, if all who have to see it there, or a copy for the rank's node. Throws
/// CheckpointGone.
template <auto fn>
std::vector<std::string> provided_checkpoint(const troupe::Gang<WorkerOf<fn>>& gang, const GangView& view,
                                             const Work& work, const CheckpointOrigins& origins,
                                             const Attempt& attempt) {
  const auto& name = work.info.restore_from;
  const auto path = CheckpointOrigins::path_of(name);
  const auto sees = [&](const auto& rank) { return CheckpointOrigins::is_visible(name, rank); };
  const bool enough =
      view.is_shared() ? sees(view.ranks.front()) : std::all_of(view.ranks.begin(), view.ranks.end(), sees);
  if (enough) return std::vector(gang.size(), path);
  const auto node = origins.node_of(name);
  if (!node || (view.is_shared() && path == name))
    throw CheckpointGone("the checkpoint " + name + " is gone: rank 0 does not find it");
  const auto packed = packed_on(*node, path, [&] { return attempt.is_over(); });
  std::vector<std::string> copies;
  std::vector<Ref<void>> received;
  for (std::size_t rank = 0; rank < gang.size(); ++rank) {
    const auto& at = view.ranks[rank];
    // Nodes that do not share the folder with the driver may share it with each other.
    copies.push_back(work.info.storage + "/received/node-" + std::to_string(at.node));
    if (at.local_rank == 0)
      received.push_back(gang.rank(rank).template call<receive_checkpoint<WorkerOf<fn>>>(packed, copies.back()));
  }
  for (const auto& each : received) each.get();
  return copies;
}

/// Hands reports to the search until the function has ended on all ranks.
template <auto fn>
void follow(troupe::detail::TrialRun<fn>& run, const GangView& view, CheckpointOrigins& origins, Attempt& attempt) {
  auto event = run.wait();
  for (; event.kind == TrialEvent::Kind::Report; event = run.wait()) {
    event.checkpoint = origins.named(event.checkpoint, view);
    run.answer(attempt.judge(event));
  }
  try {
    run.result();  // waits for the other ranks
  } catch (const TaskError&) {
    if (event.returned) throw;  // else it was thrown out of a report after its Stop, and has no result
  }
}

/// One attempt on a gang that is there. `fresh`: the workers were made for it.
template <auto fn>
void run_attempt(const troupe::Gang<WorkerOf<fn>>& gang, const troupe::detail::trainable_config<fn>& config,
                 const Work& work, bool fresh, CheckpointOrigins& origins, Attempt& attempt) {
  const auto& checkpoint = work.info.restore_from;
  std::vector<std::string> restore_from(gang.size(), checkpoint);
  GangView view;
  if (!work.marker.empty()) {
    view = view_of<fn>(gang, work.marker, checkpoint);
    if (!view.is_shared() && origins.should_say_unshared()) attempt.say(unshared_notice(view, work.marker));
    if (!checkpoint.empty()) restore_from = provided_checkpoint<fn>(gang, view, work, origins, attempt);
  }
  const bool as_made = fresh && restore_from == std::vector(gang.size(), checkpoint);
  for (std::size_t rank = 0; rank < gang.size() && !as_made; ++rank) {
    auto info = work.info;
    info.restore_from = restore_from[rank];
    // No wait: what a rank's renewal meets, its start throws.
    gang.rank(rank).template call<&WorkerOf<fn>::renew>(config, info);
  }
  troupe::detail::TrialRun<fn> run(gang);
  try {
    follow(run, view, origins, attempt);
  } catch (const TaskError&) {
    if (!attempt.is_replaced()) throw;  // else the function failed on its way out of an attempt that is given up
  } catch (...) {
    // A process that ends on its way out of an attempt that is given up is not the next attempt's doing.
    if (run.begun() && !attempt.is_replaced()) attempt.begun();
    throw;
  }
  // A rank that failed is known before the others have ended, and the next attempt needs all of them.
  if (attempt.is_replaced()) run.settle();
}

/// Ends the gang's processes: a gang that is only let go of ends with its calls, and a rank may be in one for ever.
template <class Gang>
struct GangEnd {
  const Gang& gang;
  ~GangEnd() { gang.kill(); }
};

/// On the cluster, as a gang: the first attempt, and those that replace it in the same processes.
template <auto fn, class ConfigOf>
void run_in_gang(const Each& each, const ConfigOf& config_of, Work work, CheckpointOrigins& origins, Attempt& attempt) {
  const auto gang = placed_gang<fn>(each, config_of(work.config), work.info, attempt);
  const GangEnd end{gang};
  for (bool fresh = true;; fresh = false) {
    attempt.placed([gang] { gang.kill(); });
    run_attempt<fn>(gang, config_of(work.config), work, fresh, origins, attempt);
    auto next = attempt.replacement();
    if (!next) return;
    work = *std::move(next);
  }
}

template <auto fn, class ConfigOf>
void run_here(const ConfigOf& config_of, Work work, Attempt& attempt) {
  while (true) {
    attempt.placed([] {});
    attempt.begun();
    const auto& checkpoint = work.info.restore_from;
    if (!checkpoint.empty() && !is_there(checkpoint)) throw CheckpointGone("the checkpoint " + checkpoint + " is gone");
    try {
      troupe::detail::run_locally<fn>(config_of(work.config), work.info,
                                      [&](const TrialEvent& report) { return attempt.judge(report); });
    } catch (...) {
      if (!attempt.is_replaced()) throw;  // else the function failed on its way out of an attempt that is given up
    }
    auto next = attempt.replacement();
    if (!next) return;
    work = *std::move(next);
  }
}

}  // namespace detail

/// Searches for the configuration with which `fn` does best, every trial a gang of its own:
///
///   auto results = tune::run<train_digits>({
///       .space = {{"lr", tune::loguniform(1e-3, 1.0)}, {"batch", tune::choice({32, 64, 128})}},
///       .trials = 50, .metric = "accuracy", .mode = tune::Max,
///       .scheduler = tune::asha({.max_t = 27, .eta = 3}), .each = {.workers = 2}});
///
/// `fn` is `R f(train::Context&, const Config&)` or takes a tune::Context; it reports the metric after every step of
/// training, and returns when a report is answered with Stop. Its result is not used. A trial whose function throws or
/// whose rank dies is tried again `max_failures` times and is Errored then; the others go on. One that the cluster lost,
/// because its gang did not start or its node went away, is started again up to `system_retries` times beside those.
///
/// Blocks until every trial is over, `stop` or `time_budget` ends the run, or Ctrl-C (SIGINT or SIGTERM): that ends the
/// gangs at once, and the results so far are returned, kept and summed up, as ended_early() says. A second Ctrl-C ends the
/// program. Signals are handled while a run is active only, and the handlers before it come back.
/// Throws std::invalid_argument for options that can not be, before anything is launched, Impossible where the cluster
/// can never hold one of the gangs, and std::runtime_error where the results can not be written.
template <auto fn>
Results<troupe::detail::trainable_config<fn>> run(Options<troupe::detail::trainable_config<fn>> options) {
  using Config = troupe::detail::trainable_config<fn>;
  if (!options.in_process) detail::check(options.each);
  const detail::Plan plan{.space = checked(options.space),
                          .trials = options.trials,
                          .samples = options.samples,
                          .objective = {options.metric, options.mode},
                          .seed = options.seed,
                          .scheduler = options.scheduler,
                          .searcher = options.searcher,
                          .max_concurrent = options.in_process ? 1 : options.max_concurrent,
                          .max_failures = options.max_failures,
                          .system_retries = options.system_retries,
                          .stop = options.stop,
                          .time_budget = options.time_budget,
                          .stop_grace = options.stop_grace,
                          .storage = options.storage,
                          .workers = options.in_process ? 1 : options.each.workers,
                          .show = options.show,
                          .check_fields = [](const SearchSpace& fields) { check_fields<Config>(fields); }};
  const auto config_of = [&](const Configuration& values) { return configured<Config>(options.config, values); };
  detail::CheckpointOrigins origins;
  auto outcome = detail::search(plan, [&](const detail::Work& work, detail::Attempt& attempt) {
    if (options.in_process) return detail::run_here<fn>(config_of, work, attempt);
    detail::run_in_gang<fn>(options.each, config_of, work, origins, attempt);
  });
  return {std::move(outcome), options.config};
}

}  // namespace troupe::tune
