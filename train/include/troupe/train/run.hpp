#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/cluster.hpp>
#include <troupe/detail/trainable/trial_run.hpp>
#include <troupe/errors.hpp>
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

/// For RunOptions::workers: as many ranks as the cluster's GPUs have room for, each of which has
/// RankOptions::gpus of them, or one where that is 0.
inline constexpr int AllGpus = -1;

/// One rank that waits for a debugger before its function begins. It prints the command that
/// attaches gdb, and begins once a debugger lets it go on: one in its own PID namespace, as it sees
/// no other.
struct DebuggerOptions {
  int rank = -1;  ///< -1: none
  /// After that the rank throws TimedOut. What other ranks wait for is theirs to say:
  /// ContextOptions::timeout.
  std::chrono::milliseconds wait = std::chrono::minutes(10);
};

/// One report of rank 0.
struct Report {
  std::uint64_t index = 0;  ///< from 0
  Metrics metrics = {};
  std::filesystem::path checkpoint = {};  ///< directory; empty: none
  double elapsed_s = 0;                   ///< since the function began on rank 0
};

struct RunOptions {
  /// Ranks. AllGpus counts the GPUs of the nodes that are in the cluster when the run begins
  /// (Where::ThisNode: of this machine), whoever uses them, and throws Impossible where there is
  /// none.
  int workers = 1;
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
  DebuggerOptions debugger = {};
  std::function<Verdict(const Report&)> on_report =
      {};  ///< judges each report, on the calling thread; empty: always Continue
  ShowProgress progress = ShowProgress::Auto;  ///< on standard error
};

/// What a run came to, besides the value of its function.
struct RunOutcome {
  std::vector<Report> history = {};
  /// The last one that was reported, which CheckpointOptions::keep_best never deletes. Of a run that
  /// has reported none, for example because no epoch was left: the one that it continued from. Empty:
  /// neither.
  std::filesystem::path checkpoint = {};
  double seconds = 0;    ///< that the function ran on rank 0
  bool stopped = false;  ///< by on_report
  int world_size = 0;    ///< ranks
  /// Rows of all ranks in one step, as Context::loader() or Context::effective_batch() says; 0: the
  /// function called neither.
  std::int64_t effective_batch = 0;
};
template <class R>
struct RunResult : RunOutcome {
  std::optional<R> value;  ///< rank 0's; none if the function was stopped before it returned
};
template <>
struct RunResult<void> : RunOutcome {};

namespace detail {

/// Throws std::invalid_argument, naming the field.
void check(const RunOptions& options);
/// The private cluster of Where::ThisNode, with room for the gang.
Cluster private_cluster(const RunOptions& options);
/// The options with a number of ranks in place of AllGpus. Asks the head of this process's session.
/// Throws Impossible where there are no GPUs.
RunOptions with_counted_workers(RunOptions options);
/// Of a gang that no cluster like this one can hold: throws Impossible, which names the options.
[[noreturn]] void raise_never_placed(const Impossible& refused, const RunOptions& options);
troupe::detail::RunInfo info_of(const RunOptions& options, const ProgressBar& bar);

/// Shows the event, adds a report to the outcome and asks for its verdict.
Verdict take(const troupe::detail::TrialEvent& event, const RunOptions& options,
             RunOutcome& outcome, ProgressBar& bar);
/// Adds the last event.
void close(const troupe::detail::TrialEvent& event, const RunOptions& options, RunOutcome& outcome);
/// One line: "run 'fit' has ended after 12.3 s: 4 ranks, 128 rows in each step, 10 reports; the
/// last: loss 0.25". `function` stands for a run without a name.
std::string words_of(const RunOutcome& outcome, std::string_view name, std::string_view function);
void log_end(const RunOutcome& outcome, std::string_view name, std::string_view function);

template <auto F>
auto run_here(const troupe::detail::trainable_config<F>& config, const RunOptions& options,
              ProgressBar& bar) {
  using R = troupe::detail::trainable_result<F>;
  RunResult<R> result;
  auto done = troupe::detail::run_locally<F>(config, info_of(options, bar), [&](const auto& event) {
    return take(event, options, result, bar);
  });
  bar.on_event(done.finished);
  close(done.finished, options, result);
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
  close(*event, options, result);
  run.wait_for_others();
  // A rank that is thrown out of a report after Stop has no value, and no error either.
  if constexpr (!std::is_void_v<R>) {
    if (event->returned) result.value = run.result();
  }
  return result;
}

template <auto F>
auto run_gang(const troupe::detail::trainable_config<F>& config, const RunOptions& options,
              ProgressBar& bar) {
  const GangShape shape{options.workers, options.strategy, options.placement_timeout};
  const auto gang = [&] {
    auto placed = troupe::detail::place_ranks<troupe::detail::TrainableWorker<F>>(
        shape, troupe::detail::request_of(options.each), true, config, info_of(options, bar));
    try {
      return placed.get();
    } catch (const Impossible& refused) {
      raise_never_placed(refused, options);
    }
  }();
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
  constexpr auto function = troupe::detail::function_name<F>;
  auto result = [&] {
    const bool is_here = options.where == Where::InProcess;
    detail::ProgressBar bar(options.progress, options.name, function, is_here);
    if (is_here) return detail::run_here<F>(config, options, bar);
    std::optional<Cluster> own;
    if (options.where == Where::ThisNode) own = detail::private_cluster(options);
    return detail::run_gang<F>(config, detail::with_counted_workers(options), bar);
  }();
  detail::log_end(result, options.name, function);
  return result;
}

}  // namespace troupe::train
