#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <troupe/options.hpp>
#include <troupe/trainable.hpp>
#include <troupe/tune/experiment.hpp>
#include <troupe/tune/mlflow.hpp>
#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/pbt.hpp>
#include <troupe/tune/searcher.hpp>
#include <troupe/tune/space.hpp>

namespace troupe::tune {

/// The gang of every trial.
struct Each {
  int workers = 1;            ///< ranks
  troupe::Options each = {};  ///< what each rank needs
  Strategy strategy = Strategy::Pack;
  /// For the context of each rank, also with `in_process`: `train::ContextOptions{.threads = 2}`. A
  /// tune::Context takes none.
  ContextSettings context = {};
};

/// What is shown on the standard error stream while a run goes on, and its summary at the end.
enum class Show : std::uint8_t {
  /// A table that is redrawn if it is a terminal, else lines; colour unless NO_COLOR is set.
  Auto,
  Lines,  ///< a line for each trial that starts or ends
  None,
};

/// What an earlier run, or somebody, found for a configuration.
template <class Config>
struct KnownResult {
  Config config = {};
  double value = 0;  ///< of the metric; what is not finite is the worst
  /// In place of `value`, of a run with several objectives: one for each, in their order.
  std::vector<double> values = {};
};

/// Of tune::run. Views in it (labels, custom resources) need to live until run returns.
template <class Config>
struct Options {
  Space<Config> space = {};
  /// Configurations to try; 0: every point of the space's grids, `samples` times.
  std::uint64_t trials = 0;
  std::string metric = {};  ///< reported by the function
  Mode mode = Mode::Min;
  /// In place of `metric` and `mode`, several metrics that the function reports together: {{"loss",
  /// tune::Min}, {"latency", tune::Min}}. Results::pareto_front() has the trials that none is better
  /// than in all of them, and nsga2() searches for those. All else (the scheduler, best(), `stop`,
  /// `keep_checkpoints`, the other searchers) goes by the first.
  std::vector<Objective> objectives = {};
  SchedulerFactory scheduler = fifo();
  Each each = {};
  /// In place of `each`, for trials of different size: the gang of a trial with this configuration.
  /// One that the cluster can never hold makes its trial Errored, and the others go on. Pure.
  std::function<Each(const Config&)> sized = {};
  std::string storage = {};  ///< results go to run-1, run-2, ... in this folder; empty: nowhere
  /// Goes on with the last run in `storage` where that has something left, else begins a new one.
  /// All that decides (space, trials, metric, seed, scheduler, ...) has to be as it was.
  bool resume = false;
  /// Checkpoints of each trial that stay: the best so many, and its last one; 0: all. The others are
  /// deleted once nobody can go on from them, where they lie in the run's folder.
  std::size_t keep_checkpoints = 0;
  /// Bytes of the journal after which the whole state of the search is written, and the journal
  /// begins anew behind it: to go on applies no events from before. The search waits meanwhile, some
  /// 2 us for each report of all trials. 0: never.
  std::size_t snapshot_after = std::size_t{16} << 20;
  /// Event files for `tensorboard --logdir FOLDER`, where FOLDER is the run's: a TensorBoard run
  /// for each trial with its metrics, and the HPARAMS tab. Needs `storage`.
  bool tensorboard = false;
  /// An MLflow server that is told of the search while it goes on, and of each trial.
  Mlflow mlflow = {};
  std::uint64_t seed = 0;
  std::uint64_t samples = 1;  ///< of every grid point, where `trials` is 0
  Config config = {};         ///< the fields that are not searched
  /// Configurations to try first, in this order, before the searcher is asked: good guesses. They
  /// count among `trials`.
  std::vector<Config> first = {};
  /// What a searcher that learns knows before it begins: `{{.lr = 0.1}, 0.93}`. They are no trials.
  std::vector<KnownResult<Config>> known = {};
  SearcherFactory searcher = {};   ///< empty: the grid if the space has one, else random
  std::size_t max_concurrent = 0;  ///< gangs in flight; 0: as many as the cluster has room for
  /// Of a trial before it counts as errored: how often it is tried again.
  int max_failures = 0;
  int system_retries =
      /// Of a trial whose gang did not start, or that lost its node: how often without counting it.
      3;
  /// No new trials after it, and running ones stop; 0: none.
  std::chrono::milliseconds time_budget{0};
  std::chrono::milliseconds stop_grace{
      10'000};  ///< for a trial to end once it was told to stop; then its gang is ended
  StopWhen stop = {};
  Show show = Show::Auto;
  /// For a debugger: no cluster, one trial at a time, as a gang of one in this process.
  bool in_process = false;
};

}  // namespace troupe::tune
