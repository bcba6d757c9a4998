#include "run/launch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include <troupe/ref.hpp>

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
  void run_attempts() {
    const auto shipment = ship();
    const auto run_id = make_run_id();
    if (end_now() > 0) return note_stop();  // as the folder was packed
    for (int restart = 0;; ++restart) {
      ending_.restarts = restart;
      if (!attempt(shipment, run_id, restart)) break;
      printer_.say(
          fmt::format("troupe run: {}\ntroupe run: the gang is formed anew (restart {} of {})\n",
                      in_words(ending_), restart + 1, options_.max_restarts));
      printer_.flush(std::chrono::milliseconds(0));
    }
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

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
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

  /// -> whether another is to follow.
  bool attempt(const Shipment& shipment, const std::string& run_id, int restart) {
    auto placed = place_hosts(options_, cluster_, ending_.ranks, [this] { return end_now() > 0; });
    if (placed.hosts.size() == 0) {
      note_stop();
      return false;
    }
    ending_.failure.reset();
    ending_.not_formed.clear();
    GangRun run(options_, std::move(placed), printer_);
    try {
      const auto started = [this] { note_names(); };
      if (run.run(
              shipment, run_id, restart, [this] { return end_now(); }, started)) {
        const bool is_last = !run.attempt().first_failure() || restart >= options_.max_restarts;
        unheard_ = run.was_unheard();
        print_rest(is_last ? 0 : Printer::kMostUnread);
        return judge(run, restart);
      }
      note_stop();
      return false;
    } catch (const ProcessDied& error) {
      ending_.not_formed = error.what();
    } catch (const TimedOut& error) {
      ending_.not_formed = error.what();
    }
    ending_.status = kTroupeFailed;
    return restarts_after(restart);
  }

  /// After a failure. Who ended the run then, and not the failure, is why none follows.
  bool restarts_after(int restart) {
    if (restart >= options_.max_restarts) return false;
    if (end_now() == 0) return true;
    note_stop();
    return false;
  }

  /// -> whether another attempt is to follow.
  bool judge(const GangRun& run, int restart) {
    ending_.status = 0;
    ending_.ranks = static_cast<int>(run.plan().ranks.size());
    ending_.nodes = run.plan().nodes;
    ending_.failure = run.attempt().first_failure();
    if (!ending_.failure) note_stop();
    if (unheard_ && !ending_.failure && ending_.stopped_by.empty()) {
      ending_.stopped_by = "a standard output that cannot be written";
      ending_.status = kTroupeFailed;
    }
    take_result(run);
    if (!ending_.failure) return false;
    note_failure(run);
    return !unheard_ && ending_.failure->started && restarts_after(restart);
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
