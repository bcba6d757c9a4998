#include "run/launch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include <troupe/ref.hpp>

#include "growth/growth.hpp"
#include "plan/environment.hpp"
#include "run/ending.hpp"
#include "run/files.hpp"
#include "run/gang_run.hpp"
#include "run/signals.hpp"
#include "words/refuse.hpp"
#include "workdir/packed_folder.hpp"

namespace troupe::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 4 << 20;  // of a folder that is sent
constexpr std::chrono::milliseconds kFlushes{100};
constexpr std::chrono::seconds kForReader{5};  // with whoever reads, once the run is told to end

std::string make_run_id() {
  std::random_device random;
  return fmt::format("troupe-{:08x}", random());
}

/// The run: attempts, until one ends well or none is left.
class Launch {
 public:
  Launch(const LaunchOptions& options, Cluster& cluster)
      : options_(options), cluster_(cluster), printer_(options.output) {
    ending_.max_restarts = options.max_restarts;
    if (!options.grow_after_s || !options.size.is_elastic() || options.max_restarts == 0) return;
    growth_.emplace(std::chrono::duration_cast<Growth::Duration>(Seconds(*options.grow_after_s)),
                    most_ranks(options.size, options.per_node));
  }

  /// What was printed is written then, or whoever should read it has been waited for.
  Ending run() try {
    run_attempts();
    ending_.seconds = seconds();
    printer_.say(last_line(ending_, options_.output.quiet));
    print_rest(0);
    return std::move(ending_);
  } catch (...) {
    print_rest(0);
    throw;
  }

 private:
  using Seconds = std::chrono::duration<double>;
  /// What follows an attempt.
  enum class Next { None, Restart, Growth, Return };

  void run_attempts() {
    const auto shipment = ship();
    const auto run_id = make_run_id();
    if (end_now() > 0) return note_stop();  // as the folder was packed
    for (AttemptNumber number;;) {
      ending_.restarts = number.restarts;
      ending_.growths = number.growths;
      const auto next = attempt(shipment, run_id, number);
      if (next == Next::None) break;
      number = next == Next::Growth   ? number.after_growth()
               : next == Next::Return ? number.after_vain_growth()
                                      : number.after_failure();
      say_next(number);
    }
  }

  void say_now(const std::string& what) {
    printer_.say(fmt::format("troupe run: {}\n", what));
    printer_.flush(std::chrono::milliseconds(0));
  }

  void say_next(const AttemptNumber& next) {
    const auto used =
        fmt::format("({} of {} restarts are used)", next.restarts, ending_.max_restarts);
    printer_.say(
        next.is_grown
            ? fmt::format("troupe run: the gang is formed anew, to have more ranks {}\n", used)
        : next.is_returned
            ? fmt::format(
                  "troupe run: {}\ntroupe run: the larger gang did not start, and one of at "
                  "most {} ranks is formed {}\n",
                  in_words(ending_), growth_->ranks(), used)
            : fmt::format(
                  "troupe run: {}\ntroupe run: the gang is formed anew (restart {} of {})\n",
                  in_words(ending_), next.restarts, options_.max_restarts));
    printer_.flush(std::chrono::milliseconds(0));
  }

  /// Until at most `most` bytes wait. Who was told to end does not wait for a reader that stands
  /// still.
  void print_rest(std::size_t most) {
    std::optional<Clock::time_point> told;
    for (;;) {
      if (printer_.flush(kFlushes) == Outlet::State::Broken) unheard_ = true;
      const int end = end_now();
      if (end > 0 && !told) told = Clock::now();
      if (gave_up_ || printer_.waiting() <= most) return;
      gave_up_ = end > 1 || (told && Clock::now() - *told > kForReader);
    }
  }

  double seconds() const { return Seconds(Clock::now() - begun_).count(); }
  bool is_late() const { return options_.timeout_s > 0 && seconds() >= options_.timeout_s; }
  /// 0: go on; 1: end the ranks; 2: at once.
  int end_now() const {
    if (Signals::count() > 1) return 2;
    return Signals::count() == 1 || is_late() ? 1 : 0;
  }

  Shipment ship() const {
    Shipment shipment{
        .environment = options_.own_environment ? environment_to_hand_on() : Variables(),
        .workdir = {},
        .archive = {},
        .attached =
            put(options_.attached_file.empty() ? std::string()
                                               : read_file(options_.attached_file, "--attach"))};
    // Only now: what is sent may be the result of the run before.
    remove_old(options_.result_file, "--result");
    remove_old(options_.summary_file, "--summary");
    if (options_.workdir.empty()) return shipment;
    auto packed =
        pack_folder(options_.workdir, {}, kMostWorkdirBytes, [this] { return end_now() > 0; });
    shipment.workdir = std::move(packed.digest);
    shipment.archive_bytes = packed.archive.size();
    for (std::size_t at = 0; at < packed.archive.size() && end_now() == 0; at += kPieceBytes)
      shipment.archive.push_back(put(packed.archive.substr(at, kPieceBytes)));
    return shipment;
  }

  Next attempt(const Shipment& shipment, const std::string& run_id, const AttemptNumber& number) {
    const PlacingCallbacks placing{.give_up = [this] { return end_now() > 0; },
                                   .say = [this](const std::string& why) { say_now(why); }};
    auto placed = place_hosts(options_, cluster_, before_, placing);
    if (placed.hosts.size() == 0) {
      note_stop();
      return Next::None;
    }
    ending_.failure.reset();
    ending_.not_formed.clear();
    GangRun run(options_, std::move(placed), printer_);
    try {
      const GangCallbacks callbacks{
          .end_now = [this] { return end_now(); },
          .started = [this](const GangPlan& plan) { on_started(plan); },
          .grow_now = [this](const GangPlan& plan) { return grow_now(plan); }};
      if (!run.run(shipment, run_id, number, callbacks)) {
        note_stop();
        return Next::None;
      }
      return on_ended(run, number);
    } catch (const ProcessDied& error) {
      ending_.not_formed = error.what();
    } catch (const TimedOut& error) {
      ending_.not_formed = error.what();
    }
    ending_.status = kTroupeFailed;
    return number.is_grown ? after_vain_growth() : after_failure(number);
  }

  void on_started(const GangPlan& plan) {
    note_names();
    looked_ = Clock::now();
    if (!growth_) return;
    const int goal = growth_->goal(), before = growth_->ranks();
    const auto ranks = static_cast<int>(plan.ranks.size());
    growth_->on_formed(ranks);
    if (goal == 0 || ranks > before) return;
    say_now(
        fmt::format("the gang has {} ranks, as there was no room for {} any more; it grows at "
                    "the earliest after {:g} s",
                    ranks, goal, Seconds(growth_->wait()).count()));
  }

  /// Whether there was room for a larger gang for long enough.
  bool grow_now(const GangPlan& running) {
    if (!growth_ || !growth_->is_watching()) return false;
    if (Clock::now() - looked_ < growth_->step()) return false;
    const auto seen = look_for_room(options_, cluster_, running);  // seconds, if the head is silent
    const auto now = Clock::now();
    growth_->on_look(seen, now - std::exchange(looked_, now));
    if (growth_->goal() == 0) return false;
    printer_.say(
        fmt::format("troupe run: there has been room for {} ranks for {:g} s, and {} run: they are "
                    "ended for a larger gang\n",
                    growth_->goal(), Seconds(growth_->wait()).count(), running.ranks.size()));
    return true;
  }

  Next on_ended(const GangRun& run, const AttemptNumber& number) {
    const bool for_growth = run.attempt().is_growing();
    if (growth_) growth_->on_ended(for_growth);
    const auto& failure = run.attempt().first_failure();
    const bool may_go_on = failure && (number.restarts < options_.max_restarts ||
                                       (number.is_grown && !failure->started));
    const bool is_last = !for_growth && !may_go_on;
    unheard_ = run.was_unheard();
    print_rest(is_last ? 0 : Printer::kMostUnread);
    const auto next = judge(run, number);
    if (next == Next::Growth) before_ = {.ranks = ending_.ranks, .goal = growth_->goal()};
    if (next == Next::Restart) before_ = {.ranks = ending_.ranks};
    return next;
  }

  /// One of the former size follows, which uses up no restart: what no rank starts on may be a node
  /// that has just joined.
  Next after_vain_growth() {
    growth_->on_not_started();
    before_ = {.ranks = before_.goal.value_or(0), .goal = growth_->ranks()};
    if (end_now() == 0) return Next::Return;
    note_stop();
    return Next::None;
  }

  /// Who ended the run after a failure, and not the failure, is why no other attempt follows.
  Next after_failure(const AttemptNumber& number) {
    if (number.restarts >= options_.max_restarts) return Next::None;
    if (end_now() == 0) return Next::Restart;
    note_stop();
    return Next::None;
  }

  Next judge(const GangRun& run, const AttemptNumber& number) {
    ending_.status = 0;
    ending_.ranks = static_cast<int>(run.plan().ranks.size());
    ending_.nodes = run.plan().nodes;
    ending_.failure = run.attempt().first_failure();
    if (!ending_.failure) note_stop();
    if (unheard_ && !ending_.failure && ending_.stopped_by.empty()) {
      ending_.stopped_by = "a standard output that cannot be written";
      ending_.status = kTroupeFailed;
    }
    if (run.attempt().is_growing() && ending_.stopped_by.empty()) return Next::Growth;
    take_result(run);
    if (!ending_.failure) return Next::None;
    note_failure(run);
    if (unheard_) return Next::None;
    if (!ending_.failure->started) return number.is_grown ? after_vain_growth() : Next::None;
    return after_failure(number);
  }

  void take_result(const GangRun& run) const {
    if (run.result()) write_file(options_.result_file, *run.result(), "--result");
    if (run.why_no_result().empty() || ending_.failure || !ending_.stopped_by.empty()) return;
    refuse(fmt::format("what rank 0 left as {} cannot be fetched (--result): {}", kResultVariable,
                       run.why_no_result()));
  }

  void note_stop() {
    const int signal = Signals::first();
    if (signal == 0 && !is_late()) return;
    ending_.stopped_by = signal == 0        ? "--timeout"
                         : signal == SIGINT ? "SIGINT"
                         : signal == SIGHUP ? "SIGHUP"
                                            : "SIGTERM";
    ending_.status = signal == 0 ? kTimedOut : 128 + signal;
  }

  void note_failure(const GangRun& run) {
    const auto& failure = *ending_.failure;
    const auto& place = run.plan().ranks.at(static_cast<std::size_t>(failure.rank));
    const auto& lines = printer_.last_lines(failure.rank);
    ending_.last_lines.assign(lines.begin(), lines.end());
    if (ending_.stopped_by.empty())
      ending_.status = failure.signal != 0 ? 128 + failure.signal : failure.exit_code;
    const auto known = names_.find(place.node);
    ending_.failed_node = known == names_.end() ? std::to_string(place.node) : known->second;
    ending_.failed_address = place.address;
    // No head is left to ask, which is why the rank was lost.
    if (failure.pid == 0 && !note_names() && ending_.stopped_by.empty())
      ending_.status = kTroupeFailed;
  }

  /// While nodes are there: one that is lost is not. -> false: there is no head to ask.
  bool note_names() try {
    names_.merge(node_names(cluster_));
    return true;
  } catch (const Error&) {
    return false;
  }

  const LaunchOptions& options_;
  Cluster& cluster_;
  Printer printer_;
  const Clock::time_point begun_ = Clock::now();
  Ending ending_;
  std::map<std::uint32_t, std::string> names_;  // of nodes, by their numbers
  std::optional<Growth> growth_;                // none: the gang never grows
  Clock::time_point looked_;                    // for room for more ranks
  SizeBefore before_;                           // of the next attempt
  bool unheard_ = false;                        // what is printed cannot be written
  bool gave_up_ = false;                        // to wait for whoever reads
};

Ending run_to_its_end(const LaunchOptions& options, Cluster& cluster) {
  try {
    return Launch(options, cluster).run();
  } catch (const Error& error) {  // which the caller tells
    if (!options.summary_file.empty())
      write_summary(options.summary_file, {.status = kTroupeFailed,
                                           .max_restarts = options.max_restarts,
                                           .not_formed = error.what()});
    throw;
  }
}

}  // namespace

double cpus_of_ranks_here(int ranks, double cores) {
  return std::max(1.0, std::floor(cores / std::max(1, ranks)));
}

int launch(const LaunchOptions& options, Cluster& cluster) {
  const Signals signals;
  require_writable(options.result_file, "--result");
  require_writable(options.summary_file, "--summary");
  const auto ending = run_to_its_end(options, cluster);
  if (!options.summary_file.empty()) write_summary(options.summary_file, ending);
  return ending.status;
}

}  // namespace troupe::launch
