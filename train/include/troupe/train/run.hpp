#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/cluster.hpp>
#include <troupe/detail/trainable/trial_run.hpp>
#include <troupe/gang.hpp>
#include <troupe/train/context_options.hpp>
#include <troupe/train/progress.hpp>
#include <troupe/trainable.hpp>

namespace troupe::train {

/// Where a run's ranks are.
enum class Where : std::uint8_t {
  Cluster,  ///< on the cluster of this process's session (troupe::init)
  /// As processes on this machine, in a private cluster that the run makes; this process must have
  /// no session yet.
  ThisNode,
  InProcess,  ///< one rank, on the calling thread, for a debugger; no session is needed
};

/// One report of rank 0.
struct Report {
  std::uint64_t index = 0;  ///< from 0
  Metrics metrics;
  std::filesystem::path checkpoint;  ///< directory; empty: none
  double elapsed_s = 0;              ///< since the function began on rank 0
};

struct RunOptions {
  int workers = 1;                     ///< ranks
  RankOptions each = {};               ///< what each rank needs
  Strategy strategy = Strategy::Pack;  ///< where the ranks go
  Where where = Where::Cluster;
  /// Directory for checkpoints, as rank 0's node sees it; empty: none are written.
  std::filesystem::path storage = {};
  std::filesystem::path restore_from = {};  ///< checkpoint to continue from; empty: start anew
  std::string name = {};                    ///< of the run, for people
  std::uint64_t seed = 0;                   ///< of the run, which decides its data order
  ContextOptions context = {};  ///< of the Context that each rank's function is called with
  std::optional<std::chrono::milliseconds> placement_timeout =
      {};  ///< for the gang's placement; none: as long as it takes
  std::function<Verdict(const Report&)> on_report =
      {};  ///< judges each report, on the calling thread; empty: always Continue
  ShowProgress progress = ShowProgress::Auto;  ///< on standard error
};

template <class R>
struct RunResult {
  std::optional<R> value;  ///< rank 0's; none if the function was stopped before it returned
  std::vector<Report> history;
  std::filesystem::path checkpoint;  ///< the last one that was reported; empty: none
  double seconds = 0;                ///< that the function ran on rank 0
  bool stopped = false;              ///< by on_report
};
template <>
struct RunResult<void> {
  std::vector<Report> history;
  std::filesystem::path checkpoint;
  double seconds = 0;
  bool stopped = false;
};

namespace detail {

/// Throws std::invalid_argument, naming the field.
void check(const RunOptions& options);
/// The private cluster of Where::ThisNode, with room for the gang.
Cluster private_cluster(const RunOptions& options);
troupe::detail::RunInfo info_of(const RunOptions& options, const ProgressBar& bar);

/// Shows the event, adds a report to the result and asks for its verdict.
template <class R>
Verdict take(const troupe::detail::TrialEvent& event, const RunOptions& options,
             RunResult<R>& result, ProgressBar& bar) {
  bar.on_event(event);
  if (event.kind != troupe::detail::TrialEvent::Kind::Report) return Verdict::Continue;
  result.history.push_back({event.index, event.metrics, event.checkpoint, event.elapsed_s});
  if (!event.checkpoint.empty()) result.checkpoint = event.checkpoint;
  if (!options.on_report) return Verdict::Continue;
  bar.hide();
  const auto verdict = options.on_report(result.history.back());
  bar.draw();
  return verdict;
}

template <class R>
void close(const troupe::detail::TrialEvent& event, RunResult<R>& result) {
  result.seconds = event.elapsed_s;
  result.stopped = event.stopped;
}

template <auto F>
auto run_here(const troupe::detail::trainable_config<F>& config, const RunOptions& options,
              ProgressBar& bar) {
  using R = troupe::detail::trainable_result<F>;
  RunResult<R> result;
  auto done = troupe::detail::run_locally<F>(config, info_of(options, bar), [&](const auto& event) {
    return take(event, options, result, bar);
  });
  bar.on_event(done.finished);
  close(done.finished, result);
  if constexpr (!std::is_void_v<R>) result.value = std::move(done.value);
  return result;
}

template <auto F>
auto follow(const Gang<troupe::detail::TrainableWorker<F>>& gang, const RunOptions& options,
            ProgressBar& bar) {
  using R = troupe::detail::trainable_result<F>;
  using Kind = troupe::detail::TrialEvent::Kind;
  RunResult<R> result;
  troupe::detail::TrialRun<F> run(gang);
  std::optional<troupe::detail::TrialEvent> event;
  while (!event || event->kind != Kind::Finished) {
    event = run.wait_until(bar.next());
    if (!event) {
      bar.draw();
      continue;
    }
    const auto verdict = take(*event, options, result, bar);
    if (event->kind == Kind::Report) run.answer(verdict);
  }
  close(*event, result);
  try {  // result() waits for the other ranks, too
    if constexpr (std::is_void_v<R>)
      run.result();
    else
      result.value = run.result();
  } catch (const TaskError&) {
    if (event->returned) throw;  // else it was thrown out of a report after Stop, and has no value
  }
  return result;
}

template <auto F>
auto run_gang(const troupe::detail::trainable_config<F>& config, const RunOptions& options,
              ProgressBar& bar) {
  const GangShape shape{options.workers, options.strategy, options.placement_timeout};
  const auto gang =
      troupe::detail::place_ranks<troupe::detail::TrainableWorker<F>>(
          shape, troupe::detail::request_of(options.each), true, config, info_of(options, bar))
          .get();
  try {
    return follow<F>(gang, options, bar);
  } catch (...) {
    // A gang that is only let go of ends with its calls, and a rank may be in one for as long as it
    // likes.
    gang.kill();
    throw;
  }
}

}  // namespace detail

/// Runs `R F(Context&, const Config&)` on every rank of a gang, and blocks until it has ended. ->
/// rank 0's value and its reports. Throws what F threw on a rank (TaskError), ActorDied for a rank
/// whose process died, Impossible or TimedOut for a gang that is not placed, std::invalid_argument
/// for invalid options, and what on_report threw. If several ranks fail, it throws the error of the
/// rank that caused the failure, not GangBroken of the ranks that waited for it. Whatever it
/// throws, the gang's processes have ended by then or end within a moment.
template <auto F>
RunResult<troupe::detail::trainable_result<F>> run(
    const troupe::detail::trainable_config<F>& config, const RunOptions& options = {}) {
  detail::check(options);
  const bool is_here = options.where == Where::InProcess;
  detail::ProgressBar bar(options.progress, options.name, troupe::detail::function_name<F>,
                          is_here);
  if (is_here) return detail::run_here<F>(config, options, bar);
  std::optional<Cluster> own;
  if (options.where == Where::ThisNode) own = detail::private_cluster(options);
  return detail::run_gang<F>(config, options, bar);
}

}  // namespace troupe::train
