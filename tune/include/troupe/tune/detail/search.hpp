#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/detail/trainable/trial_run.hpp>
#include <troupe/tune/detail/checkpoints.hpp>
#include <troupe/tune/detail/field_order.hpp>
#include <troupe/tune/options.hpp>
#include <troupe/tune/results.hpp>

/// What tune::run hands to the part of it that is no template.
namespace troupe::tune::detail {

using troupe::detail::RunInfo;
using troupe::detail::TrialEvent;

/// What an attempt runs.
struct Work {
  Configuration config = {};
  /// Restore_from: as the search names the checkpoint, not as a node sees it.
  RunInfo info = {};
  /// A file that the driver has put into the run's folder; empty: there is none.
  std::string marker = {};
  int workers = 0;  ///< of the gang; 0: as the options say
  /// The trial's attempt, whose copies of a checkpoint are deleted after it; 0: they stay, and the
  /// trial's next ones are written over them.
  int attempt = 0;
};

/// What each rank of a gang asks for.
struct RankNeeds {
  double cpus = 0;
  double gpus = 0;
};
RankNeeds needs_of(const troupe::detail::RequestOptions& each);

/// The key of the rendezvous of a trial's whole gang, this_gang(), that Workers::tell_to_end() sets.
/// A function that looks for it, in any of the runs in its gang, ends well before its gang does.
inline constexpr const char* kToldToEnd = "troupe-tune/told-to-end";

/// The workers of the gang that a trial's attempts run in, whatever function they run. Every call
/// returns at once; used by the search's thread. The gang ends, or its request is taken back, with
/// this object.
class Workers : public troupe::detail::TrialRanks {
 public:
  /// Ready once the gang is placed, or refused.
  virtual Ref<void> placed() const = 0;
  /// Once placed() is ready, before any of the calls below: takes the gang, or throws why there is
  /// none.
  virtual void take() = 0;
  virtual RankNeeds needs() const = 0;
  /// The numbers of the nodes of its ranks.
  virtual std::vector<std::uint32_t> nodes() const = 0;
  /// What this process has of its ranks: for signs_in().
  virtual troupe::detail::ObjectPtr ask_for_signs() const = 0;
  virtual Ref<troupe::detail::Surroundings> look(std::size_t rank, const std::string& marker,
                                                 const std::string& checkpoint) const = 0;
  /// Makes `path`, on the rank's node, the folder that was packed.
  virtual Ref<void> receive(std::size_t rank, const Ref<PackedFolder>& packed,
                            const std::string& path) const = 0;
  /// Makes the rank as if it had been made for this. What it meets, its start throws.
  virtual void renew(std::size_t rank, const Work& work) const = 0;
  /// Sets kToldToEnd, also while every rank is in a call. No effect where the gang is gone.
  virtual void tell_to_end() const = 0;
};
/// Asks for a gang, whose workers are made for `work`. Throws for options or a configuration that
/// can not be.
using AskForWorkers = std::function<std::unique_ptr<Workers>(const Work& work)>;

/// One attempt after another of a trial that runs in this process, as its thread sees the search.
class LocalAttempt {
 public:
  virtual ~LocalAttempt() = default;
  /// The attempt begins. Throws Cancelled if the search wants nothing more of it.
  virtual void begins() = 0;
  /// Waits for the verdict on a report.
  virtual Verdict judge(const TrialEvent& report) = 0;
  /// After a Stop: what is to begin in place of the attempt that ended; none: nothing. Asked once
  /// for each Stop. Throws Cancelled if the search wants nothing more of it.
  virtual std::optional<Work> replacement() = 0;
  /// True between a Stop and the replacement() that has something.
  virtual bool is_replaced() const = 0;
};

/// Runs work to its end, on a thread of its own. Throws CheckpointGone, or what went wrong.
using RunHere = std::function<void(const Work& work, LocalAttempt& attempt)>;

struct KnownValue {
  Configuration config = {};
  double value = 0;
  std::vector<double> values = {};  ///< of a run with several objectives
  double violation = 0;
  std::vector<Objective> objectives = {};  ///< as KnownResult::objectives
};

/// Everything in Options that does not depend on Config.
struct Plan {
  SearchSpace space = {};
  Completion completion = {};
  Configuration unsearched = {};  ///< what the function is given beside what the space gives it
  std::uint64_t trials = 0;
  std::uint64_t samples = 1;
  Objective objective = {};
  std::vector<Objective> objectives = {};  ///< all of them, where there are several; else empty
  std::vector<Constraint> constraints = {};
  std::uint64_t seed = 0;
  SchedulerFactory scheduler = {};
  std::vector<Configuration> first = {};
  std::vector<KnownValue> known = {};
  SearcherFactory searcher = {};
  std::size_t max_concurrent = 0;
  int max_failures = 0;
  int system_retries = 3;
  StopWhen stop = {};
  std::chrono::milliseconds time_budget{0};
  std::chrono::milliseconds stop_grace{0};
  std::chrono::milliseconds notice_silence{0};
  /// For functions that look for kToldToEnd: how long they have to end once they were told so, where
  /// the run ends before they do. 0: their gangs are ended at once.
  std::chrono::milliseconds end_grace{0};
  /// How these two are given, for people.
  std::string stop_grace_text = ".stop_grace";
  std::string end_grace_text = {};
  std::filesystem::path storage = {};
  std::size_t keep_checkpoints = 0;
  std::size_t snapshot_after = std::size_t{16} << 20;
  std::chrono::milliseconds report_every{10'000};
  bool tensorboard = false;
  Mlflow mlflow = {};
  bool resume = false;
  std::string resume_folder = {};  ///< of an earlier run; empty: `resume` says
  /// What describes the search, for `troupe tune`: then `resume` never begins a run. Empty: a
  /// program's own options.
  std::string sweep_file = {};
  /// Where the program of a rank prints to, in its trial's folder, with {} for the rank. Empty: what it
  /// prints goes to the log of its process.
  std::string output_file = {};
  int workers = 1;
  bool is_in_process = false;
  bool is_sized = false;          ///< each trial's configuration says how large its gang is
  ContextSettings settings = {};  ///< of each rank's context
  Show show = Show::Auto;
  /// Throws std::invalid_argument where a field is not the configuration's, or can not take every
  /// value of its domain.
  std::function<void(const SearchSpace&)> check_fields = {};
};

/// What a run searches for: its objectives, or `metric` as the only one. Throws
/// std::invalid_argument where both are given, and for objectives without a name or named twice.
std::vector<Objective> objectives_of(const std::string& metric, Mode mode,
                                     const std::vector<Objective>& objectives);

/// `objectives`: how many, where there are several. Throws std::invalid_argument for constraints of a
/// run with one objective, and for one that can not be kept to.
void check_constraints(const std::vector<Constraint>& constraints, std::size_t objectives);

/// Of an entry of `.first` or `.known`, the how manieth: throws std::invalid_argument.
[[noreturn]] void refuse_given(std::string_view option, std::size_t index, std::string_view why);

/// What the space searches of the entry `index` of `option`.
template <class Config>
Configuration given_part(const Space<Config>& space, const Config& config, std::string_view option,
                         std::size_t index) {
  try {
    return searched_part(space, config);
  } catch (const std::invalid_argument& refused) {
    refuse_given(option, index, refused.what());
  }
}

/// Throws std::invalid_argument where the entry `index` of `.first` has a value of a field without a
/// condition that neither `.config` has, nor `defaults`: no trial would have it.
void check_unsearched(const Configuration& given, const Configuration& config,
                      const Configuration& defaults, const std::vector<std::string>& conditional,
                      std::size_t index);

/// Throws std::invalid_argument for a space or objectives that can not be.
template <class Config>
Plan plan_of(const Options<Config>& options) {
  auto space = checked(options.space);
  FieldOrder<Config>(options.space, options.config).check();
  auto completion = completion_of(options.space, options.config);
  auto unsearched = unsearched_part(options.space, options.config);
  const auto defaults = unsearched_part(options.space, Config{});
  std::vector<Configuration> first;
  for (const auto& config : options.first) {
    check_unsearched(unsearched_part(options.space, config), unsearched, defaults,
                     completion.conditional, first.size());
    first.push_back(given_part(options.space, config, ".first", first.size()));
  }
  std::vector<KnownValue> known;
  for (const auto& [config, value, values, violation, objectives] : options.known)
    known.push_back({given_part(options.space, config, ".known", known.size()), value, values,
                     violation, objectives});
  auto objectives = objectives_of(options.metric, options.mode, options.objectives);
  const auto first_objective = objectives.front();
  if (objectives.size() == 1) objectives.clear();
  check_constraints(options.constraints, objectives.size());
  return {.space = std::move(space),
          .completion = std::move(completion),
          .unsearched = std::move(unsearched),
          .trials = options.trials,
          .samples = options.samples,
          .objective = first_objective,
          .objectives = std::move(objectives),
          .constraints = options.constraints,
          .seed = options.seed,
          .scheduler = options.scheduler,
          .first = std::move(first),
          .known = std::move(known),
          .searcher = options.searcher,
          .max_concurrent = options.in_process ? 1 : options.max_concurrent,
          .max_failures = options.max_failures,
          .system_retries = options.system_retries,
          .stop = options.stop,
          .time_budget = options.time_budget,
          .stop_grace = options.stop_grace,
          .notice_silence = options.notice_silence,
          .storage = options.storage,
          .keep_checkpoints = options.keep_checkpoints,
          .snapshot_after = options.snapshot_after,
          .report_every = options.report_every,
          .tensorboard = options.tensorboard,
          .mlflow = options.mlflow,
          .resume = options.resume,
          .workers = options.in_process ? 1 : options.each.workers,
          .is_in_process = options.in_process,
          .is_sized = bool(options.sized),
          .settings = options.each.context,
          .show = options.show,
          .check_fields = [](const SearchSpace& fields) { check_fields<Config>(fields); }};
}

/// Throws std::invalid_argument where no gang can ever be asked for with these options.
void check(const Each& each);
/// Of what `.sized` returns; likewise, and where it has a context.
void check_sized(const Each& each);
/// For a function that takes a tune::Context. Throws std::invalid_argument where there are any.
void refuse_settings(const ContextSettings& settings);

/// Runs the search to its end, every trial a gang on the cluster. Blocks, and drives all gangs on
/// the calling thread.
Outcome search(const Plan& plan, const AskForWorkers& ask_for_workers);
/// Likewise in this process, one trial at a time.
Outcome search_here(const Plan& plan, const RunHere& run_here);

}  // namespace troupe::tune::detail
