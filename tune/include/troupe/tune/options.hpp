#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <troupe/options.hpp>
#include <troupe/trainable.hpp>
#include <troupe/tune/experiment.hpp>
#include <troupe/tune/known.hpp>
#include <troupe/tune/mlflow.hpp>
#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/pbt.hpp>
#include <troupe/tune/searcher.hpp>
#include <troupe/tune/space.hpp>

namespace troupe::tune {

/// The gang of every trial.
struct Each {
  int workers = 1;        ///< ranks
  RankOptions each = {};  ///< what each rank needs
  Strategy strategy = Strategy::Pack;
  /// For the context of each rank, also with `in_process`: `train::ContextOptions{.threads = 2}`. A
  /// tune::Context takes none.
  ContextSettings context = {};
};

/// What a run shows on the standard error stream, and its summary at the end.
enum class Show : std::uint8_t {
  /// On a terminal a table that is redrawn, else lines; colour unless NO_COLOR is set.
  Auto,
  Lines,  ///< a line for each trial that starts or ends
  None,
};

/// Options of tune::run.
template <class Config>
struct Options {
  Space<Config> space = {};
  /// Configurations to try; 0: every point of the space's grids, `samples` times. A resumed run may
  /// get more trials than it had, unless its scheduler decides by their number.
  std::uint64_t trials = 0;
  std::string metric = {};  ///< reported by the function
  ModeOption mode = Mode::Min;
  /// In place of `metric` and `mode`, several metrics that the function reports together: {{"loss",
  /// tune::Min}, {"latency", tune::Min}}. Results::pareto_front() has the trials that no other
  /// trial dominates, and nsga2() searches for those. Everything else (the scheduler, best(),
  /// `stop`, `keep_checkpoints`, the other searchers) uses the first objective.
  std::vector<Objective> objectives = {};
  /// What trials of a run with several objectives keep to: {{"memory", tune::AtMost, 8}}. The function
  /// reports these metrics with the objectives. A trial that does not keep to all of them is not in
  /// the front, and nsga2() prefers those that do, then those that are less far from it. Everything
  /// else pays no attention to them.
  std::vector<Constraint> constraints = {};
  SchedulerFactory scheduler = fifo();
  Each each = {};
  /// In place of `each`, for trials of different size: the gang of a trial with this configuration.
  /// If the cluster can never hold the gang, the trial is Errored, and the others continue. Must be
  /// pure.
  std::function<Each(const Config&)> sized = {};
  /// Results go to run-1, run-2, ... in this folder; empty: nowhere.
  std::filesystem::path storage = {};
  /// Resumes the last run in `storage` if that run has something left or gets more trials;
  /// otherwise begins a new run, and says so. Everything that affects decisions (space, metric,
  /// seed, scheduler, ...) must be unchanged; `trials` may be more, and what differs in `config` is
  /// named in a notice.
  bool resume = false;
  /// Checkpoints of each trial that stay: the best so many, the one that goes with its best report
  /// (TrialResult::checkpoint()), and its last one; 0: all. The others are deleted once nobody can go
  /// on from them, where they lie in the run's folder, also on nodes that do not share it.
  std::size_t keep_checkpoints = 0;
  /// Bytes of the journal after which the whole state of the search is written as a snapshot and
  /// the journal begins anew, so that resuming applies no earlier events. The search waits
  /// meanwhile, some 2 us for each report of all trials. 0: never.
  std::size_t snapshot_after = std::size_t{16} << 20;
  /// How often report.html is written anew while the run goes on and something happens, or as often as that takes a
  /// hundredth of the time, whichever is rarer; 0: at the end alone. The search waits meanwhile.
  std::chrono::milliseconds report_every{10'000};
  /// Event files for `tensorboard --logdir FOLDER`, where FOLDER is the run's: a TensorBoard run
  /// for each trial with its metrics, and the HPARAMS tab. Needs `storage`.
  bool tensorboard = false;
  /// An MLflow server to which the search and each trial are reported while the search runs.
  Mlflow mlflow = {};
  std::uint64_t seed = 0;
  std::uint64_t samples = 1;                   ///< of every grid point, where `trials` is 0
  Config config = detail::defaults<Config>();  ///< the fields that are not searched
  /// Configurations to try first, in this order, before the searcher is asked. They count among
  /// `trials`.
  std::vector<Config> first = {};
  /// Results with which a learning searcher begins: `{{.lr = 0.1}, 0.93}`, or those of an earlier run,
  /// `tune::load<Config>(folder).known()`. They are no trials.
  std::vector<KnownResult<Config>> known = {};
  SearcherFactory searcher = {};   ///< empty: the grid if the space has one, else random
  std::size_t max_concurrent = 0;  ///< gangs in flight; 0: as many as the cluster has room for
  /// How often a trial is retried before it counts as errored.
  int max_failures = 0;
  int system_retries =
      /// How often in a row, without a new report between, a trial is started again whose gang did
      /// not start or lost its node, uncounted.
      3;
  /// After this time no new trials begin and running ones stop; 0: no limit.
  std::chrono::milliseconds time_budget{0};
  std::chrono::milliseconds stop_grace{
      10'000};  ///< for a trial to end after it was told to stop; then its gang is ended
  /// After this time without a report a running trial is named in a notice, once, with where its
  /// ranks stand; 0: after ten times the longest wait for a report so far, and at least a minute,
  /// and after five minutes while nobody has reported.
  std::chrono::milliseconds notice_silence{0};
  StopWhen stop = {};
  Show show = Show::Auto;
  /// For a debugger: without a cluster, one trial at a time, as a gang of one in this process.
  bool in_process = false;
};

}  // namespace troupe::tune
