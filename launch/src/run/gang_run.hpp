#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "os/running_time.hpp"
#include "plan/plan.hpp"
#include "run/attempt.hpp"
#include "run/launch.hpp"
#include "run/placement.hpp"
#include "run/printer.hpp"

namespace troupe::launch {

/// What every host is sent. The refs are of values that the driver holds for all attempts.
struct Shipment {
  Variables environment;                  ///< of every rank
  std::string workdir;                    ///< digest of the folder; empty: none
  std::vector<Ref<std::string>> archive;  ///< in pieces
  std::uint64_t archive_bytes = 0;
  Ref<std::string> attached;
};

/// What a GangRun asks and tells whoever made it.
struct GangCallbacks {
  /// Asked every 100 ms; 1: end the ranks, with their grace; 2: without.
  std::function<int()> end_now;
  /// The programs run.
  std::function<void(const GangPlan&)> started;
  /// Asked every 100 ms while all of them run: whether to end them for a gang of more ranks.
  std::function<bool(const GangPlan&)> grow_now;
};

/// One attempt at running the programs on hosts that were placed: starts them, prints what they
/// write, and ends all of them once one has failed or the run is to end. Used by one thread.
class GangRun {
 public:
  using Clock = std::chrono::steady_clock;

  GangRun(const LaunchOptions& options, PlacedHosts placed, Printer& printer);
  /// Ends what is left.
  ~GangRun();
  GangRun(const GangRun&) = delete;
  GangRun& operator=(const GangRun&) = delete;

  /// Runs to the end of every rank. -> false: it was to end before the ranks were started. Throws
  /// ProcessDied or TimedOut where a host is lost before that.
  bool run(const Shipment& shipment, const std::string& run_id, const AttemptNumber& number,
           const GangCallbacks& callbacks);

  const Attempt& attempt() const { return *attempt_; }  ///< once run() has returned true
  const GangPlan& plan() const { return plan_; }
  const std::optional<std::string>& result() const { return result_; }
  /// Rank 0 left something that is no file to be fetched. Empty: it did not.
  const std::string& why_no_result() const { return why_no_result_; }
  /// It was ended since what the ranks print could not be written any more.
  bool was_unheard() const { return unheard_; }

 private:
  struct Host {
    Ref<HostNews> news;
    int exited = 0;  // of its programs; what they wrote may be there still
    bool over = false;
  };

  bool start(const Shipment& shipment, const std::string& run_id, const AttemptNumber& number,
             const std::function<int()>& end_now);
  bool send(const Shipment& shipment, const std::vector<HostFacts>& facts,
            const std::function<int()>& end_now);
  void leave();
  void look(std::chrono::milliseconds patience);
  void print(std::chrono::milliseconds patience);
  bool takes_output(const Host& host) const;
  void on_news(std::size_t host, HostNews news);
  void on_lost(std::size_t host, const std::string& why);
  void stop(std::chrono::milliseconds grace);
  int rank_of(std::size_t host, int local) const {
    return static_cast<int>(host) * per_host_ + local;
  }

  const LaunchOptions& options_;
  Gang<RankHost> gang_;
  int per_host_;
  Printer& printer_;
  GangPlan plan_;
  std::optional<Attempt> attempt_;
  std::vector<Host> hosts_;
  std::optional<os::RunningTime> ending_;  // since the hosts were told to stop: what they have left
  bool unheard_ = false;                   // what is printed cannot be written
  std::optional<std::string> result_;
  std::string why_no_result_;
};

}  // namespace troupe::launch
