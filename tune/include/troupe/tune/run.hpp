#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include <troupe/detail/trial_run.hpp>
#include <troupe/tune/context.hpp>
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
void follow(troupe::detail::TrialRun<fn>& run, Attempt& attempt) {
  auto event = run.wait();
  for (; event.kind == TrialEvent::Kind::Report; event = run.wait()) run.answer(attempt.judge(event));
  try {
    run.result();  // waits for the other ranks
  } catch (const TaskError&) {
    if (event.returned) throw;  // else it was thrown out of a report after its Stop, and has no result
  }
}

/// On the cluster, as a gang.
template <auto fn>
void run_in_gang(const Each& each, const troupe::detail::trainable_config<fn>& config, const RunInfo& info,
                 Attempt& attempt) {
  const auto gang = placed_gang<fn>(each, config, info, attempt);
  attempt.placed([gang] { gang.kill(); });
  troupe::detail::TrialRun<fn> run(gang);
  try {
    follow(run, attempt);
  } catch (...) {
    if (run.begun()) attempt.begun();
    throw;
  }
}

template <auto fn>
void run_here(const troupe::detail::trainable_config<fn>& config, const RunInfo& info, Attempt& attempt) {
  attempt.placed([] {});
  attempt.begun();
  troupe::detail::run_locally<fn>(config, info, [&](const TrialEvent& report) { return attempt.judge(report); });
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
                          .show = options.show};
  auto outcome = detail::search(
      plan, [&](const Configuration& configuration, const detail::RunInfo& info, detail::Attempt& attempt) {
        const auto config = configured<Config>(options.config, configuration);
        if (options.in_process) return detail::run_here<fn>(config, info, attempt);
        detail::run_in_gang<fn>(options.each, config, info, attempt);
      });
  return {std::move(outcome), options.config};
}

}  // namespace troupe::tune
