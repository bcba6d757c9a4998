#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/cluster_nodes.hpp>
#include <troupe/detail/failure.hpp>
#include <troupe/detail/trainable/trial_run.hpp>
#include <troupe/tune/context.hpp>
#include <troupe/tune/detail/checkpoints.hpp>
#include <troupe/tune/detail/search.hpp>

namespace troupe::tune {

namespace detail {

template <class Worker>
void receive_checkpoint(Worker&, const PackedFolder& folder, const std::string& path) {
  unpack_folder(folder, path);
}

/// The gang of TrainableWorker<fn> that a trial runs in. `config_of` outlives it.
template <auto fn, class ConfigOf>
class GangWorkers final : public Workers {
 public:
  using Worker = troupe::detail::TrainableWorker<fn>;

  GangWorkers(const Each& each, const ConfigOf& config_of, const Work& work)
      : GangWorkers({.size = each.workers, .strategy = each.strategy},
                    troupe::detail::request_of(each.each), config_of, work) {}
  /// For needs with labels that are known only as the program runs.
  GangWorkers(const GangShape& shape, const troupe::detail::RequestOptions& needs,
              const ConfigOf& config_of, const Work& work)
      : config_of_(config_of),
        needs_(needs_of(needs)),
        pending_(troupe::detail::place_ranks<Worker>(shape, needs, false, config_of(work.config),
                                                     work.info)) {}
  /// A gang that is only let go of ends with its calls, and a rank may be in one for ever.
  ~GangWorkers() override {
    if (ranks_) ranks_->gang().kill();
  }

  Ref<void> placed() const override { return pending_.placed(); }
  void take() override { ranks_.emplace(pending_.get()); }

  RankNeeds needs() const override { return needs_; }
  std::vector<std::uint32_t> nodes() const override {
    return troupe::detail::nodes_of(rank_actors());
  }
  troupe::detail::ObjectPtr ask_for_signs() const override {
    return troupe::detail::ask_for_signs(rank_actors());
  }

  std::size_t size() const override { return ranks_->size(); }
  Ref<void> start(std::size_t rank) const override { return ranks_->start(rank); }
  Ref<void> finish(std::size_t rank) const override { return ranks_->finish(rank); }
  Ref<TrialEvent> next(std::optional<Verdict> verdict) const override {
    return ranks_->next(verdict);
  }
  Ref<troupe::detail::Surroundings> look(std::size_t rank, const std::string& marker,
                                         const std::string& checkpoint) const override {
    return at(rank).template call<&Worker::look>(marker, checkpoint);
  }
  Ref<void> receive(std::size_t rank, const Ref<PackedFolder>& packed,
                    const std::string& path) const override {
    return at(rank).template call<receive_checkpoint<Worker>>(packed, path);
  }
  void renew(std::size_t rank, const Work& work) const override {
    at(rank).template call<&Worker::renew>(config_of_(work.config), work.info);
  }
  void tell_to_end() const override {
    troupe::detail::tell_gang(at(0).state(), kToldToEnd, "by the search");
  }

 private:
  std::vector<troupe::detail::ActorPtr> rank_actors() const {
    std::vector<troupe::detail::ActorPtr> ranks;
    for (const auto& rank : ranks_->gang()) ranks.push_back(rank.state());
    return ranks;
  }
  const Actor<Worker>& at(std::size_t rank) const { return ranks_->gang().rank(rank); }

  const ConfigOf& config_of_;
  const RankNeeds needs_;
  PendingGang<Worker> pending_;
  std::optional<troupe::detail::RanksOf<fn>> ranks_;  // once taken
};

template <auto fn, class ConfigOf>
void run_here(const ConfigOf& config_of, Work work, LocalAttempt& attempt) {
  while (true) {
    attempt.begins();
    const auto& checkpoint = work.info.restore_from;
    if (!checkpoint.empty() && !is_there(checkpoint))
      throw CheckpointGone("the checkpoint " + checkpoint.string() + " is gone");
    try {
      troupe::detail::run_locally<fn>(
          config_of(work.config), work.info,
          [&](const TrialEvent& report) { return attempt.judge(report); });
    } catch (...) {
      // Else the function failed on its way out of an attempt that is given up.
      if (!attempt.is_replaced()) throw;
    }
    auto next = attempt.replacement();
    if (!next) return;
    work = *std::move(next);
  }
}

/// What `.sized` gives for a trial of this configuration. Throws std::invalid_argument where no gang
/// can be asked for with it, and TaskError for what `.sized` passes on of the cluster, which would
/// else be taken for the answer of the cluster about the gang.
template <class Config>
Each sized(const std::function<Each(const Config&)>& of, const Config& config) {
  Each each;
  try {
    each = of(config);
  } catch (const Error&) {
    raise(troupe::detail::current_failure_of_user(".sized"));
  }
  check_sized(each);
  return each;
}

/// `resumed`: the folder of an earlier run; empty: a new one, or as the options say.
template <auto fn, class Config>
Results<Config> run_or_resume(Options<Config> options, const std::filesystem::path& resumed) {
  if (!options.in_process) check(options.each);
  if constexpr (std::is_same_v<troupe::detail::trainable_context<fn>, Context>)
    refuse_settings(options.each.context);
  auto plan = plan_of(options);
  plan.resume_folder = resumed.string();
  const auto config_of = [&](const Configuration& values) {
    return configured<Config>(options.config, values);
  };
  auto outcome = options.in_process
                     ? search_here(plan,
                                   [&](const Work& work, LocalAttempt& attempt) {
                                     run_here<fn>(config_of, work, attempt);
                                   })
                     : search(plan, [&](const Work& work) -> std::unique_ptr<Workers> {
                         using Gang = GangWorkers<fn, decltype(config_of)>;
                         auto each = options.sized ? sized(options.sized, config_of(work.config))
                                                   : options.each;
                         if (work.workers > 0) each.workers = work.workers;
                         return std::make_unique<Gang>(each, config_of, work);
                       });
  return {std::move(outcome), options.config};
}

}  // namespace detail

/// Searches for the configuration with which `fn` does best, every trial a gang of its own:
///
///   auto results = tune::run<train_digits>({
///       .space = {{"lr", tune::loguniform(1e-3, 1.0)}, {"batch", tune::choice({32, 64, 128})}},
///       .trials = 50, .metric = "accuracy", .mode = tune::Max,
///       .scheduler = tune::asha({.max_t = 27, .eta = 3}), .each = {.workers = 2}});
///
/// `fn` is `R f(train::Context&, const Config&)` or takes a tune::Context; it reports the metric
/// after every step of training, and returns when a report is answered with Stop. Its result is not
/// used. A trial whose function throws, whatever that is, or whose rank dies is tried again
/// `max_failures` times and is Errored then; the others go on. One that the cluster lost, because its gang did not start or
/// its node went away, is started again beside those, up to `system_retries` times in a row without
/// a new report between.
///
/// Blocks until every trial is over, `stop` or `time_budget` ends the run, or Ctrl-C (SIGINT or
/// SIGTERM): that ends the gangs at once, and the results so far are returned, kept and summed up,
/// as ended_early() and signal() say. A later run of the same program then throws Interrupted. A
/// second Ctrl-C ends the program. Signals are handled while a run is active only, and the handlers
/// before it come back. A cluster that is stopped or lost ends the run in the same way. No thread is made, whatever the number of gangs; with `in_process` one, and
/// libcurl's own where `mlflow.url` has the name of a host, not its number.
/// Throws std::invalid_argument for options that can not be, before anything is launched,
/// Impossible where the cluster can never hold one of the gangs, and std::runtime_error where the
/// results can not be written.
template <auto fn>
Results<troupe::detail::trainable_config<fn>> run(
    Options<troupe::detail::trainable_config<fn>> options) {
  if constexpr (!detail::kIsConfiguration<troupe::detail::trainable_config<fn>>)
    std::abort();  // the compiler has said why, and no program comes of it
  else
    return detail::run_or_resume<fn>(std::move(options), "");
}

/// Goes on with an earlier run from its folder (`storage`/run-N), whatever ended it: Ctrl-C, a time
/// budget, the death of the driver, of the head or of nodes. What was decided stays decided, what
/// was under way is launched again from its last checkpoint, and from there the decisions are those
/// of a run that was never interrupted. `options` are those that the run was begun with; `storage`
/// and `resume` are not looked at. A run that is over is not run again: its results come back. With
/// more `trials` it goes on for as many, as one that had them from its beginning, unless its
/// scheduler goes by their number (HyperBand, promotion, populations, resource_changing).
/// Throws like run; std::invalid_argument, saying what differs, where the folder is of another
/// search or of a newer Troupe; std::runtime_error where another program runs it now. In these cases
/// nothing in the folder is changed.
template <auto fn>
Results<troupe::detail::trainable_config<fn>> resume(
    const std::filesystem::path& folder, Options<troupe::detail::trainable_config<fn>> options) {
  if constexpr (!detail::kIsConfiguration<troupe::detail::trainable_config<fn>>)
    std::abort();  // the compiler has said why, and no program comes of it
  else
    return detail::run_or_resume<fn>(std::move(options), folder);
}

}  // namespace troupe::tune
