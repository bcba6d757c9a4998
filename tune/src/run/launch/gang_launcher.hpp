#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include <troupe/detail/trainable/lent_cpu.hpp>
#include <troupe/tune/detail/search.hpp>

#include "run/launch/known_nodes.hpp"
#include "run/launch/launcher.hpp"
#include "run/launch/slots.hpp"

namespace troupe::tune {

class GangAttempt;

/// Every launch is a gang on the cluster. Drives all of them on the search's thread: wait() sleeps
/// until a call on any gang has come, and takes the gangs as far as they go. A request for a gang
/// keeps its place in the cluster's queue until it is placed or end() takes it back.
///
/// A cluster ends node by node, and each process says so by a connection of its own: a gang that
/// ends with the cluster may be heard of before the cluster's end. A failure for such a loss is
/// therefore told only when the head has answered a question that was asked half a second after it,
/// or has not for 5 s.
class GangLauncher final : public Launcher {
 public:
  /// `work_of` says what a launch runs. `output_file`: as Plan::output_file.
  GangLauncher(detail::AskForWorkers ask_for_workers,
               std::function<detail::Work(const Launch&)> work_of, Seconds already = Seconds(0),
               std::string output_file = {});
  /// Ends what still runs.
  ~GangLauncher() override;

  void launch(const Launch& launch) override;
  std::optional<GangEvent> wait(Seconds timeout) override;
  /// Looks at all gangs once more when it has handed out what it knew of.
  std::optional<GangEvent> at_hand() override;
  void answer(TrialId trial, std::int64_t k, Verdict verdict) override;
  void replace(const Launch& launch, std::int64_t k) override;
  void end(TrialId trial) override;
  void tell_to_end(TrialId trial) override;
  bool tell_where(TrialId trial, const std::string& what) override;
  std::optional<InUse> in_use() override;
  std::vector<std::string> take_spare_copies() override { return origins_.take_spare_copies(); }
  Seconds now() const override { return already_ + (Clock::now() - began_); }

 private:
  using Clock = std::chrono::steady_clock;
  using Attempts = std::map<TrialId, std::unique_ptr<GangAttempt>>;

  /// A failure that may be the cluster's end.
  struct Held {
    GangEvent event;
    Clock::time_point ask_at;
    troupe::detail::ObjectPtr answer;  // of the head, once it was asked
  };

  /// Where an attempt stands, for a notice.
  struct Where {
    TrialId trial = 0;
    std::string what;
    std::vector<Place> places;
    bool first_has_returned = false;
    std::filesystem::path folder;  // of the trial
    troupe::detail::ObjectPtr signs;
    Clock::time_point until;  // and then without them
  };

  GangEvent take_first();
  void tell_or_hold(GangEvent event);
  bool is_to_wait(Held& held) const;
  void release_held();
  void look_at_all();
  Attempts::iterator step(Attempts::iterator at);
  void look_at_cluster();
  void say_where();
  std::vector<std::filesystem::path> output_files(const std::filesystem::path& folder,
                                                  std::size_t ranks) const;
  void sleep_until(Clock::time_point deadline) const;

  const troupe::detail::LentCpu lent_cpu_;  // of a task that searches: its trials need one
  const detail::AskForWorkers ask_for_workers_;
  const std::function<detail::Work(const Launch&)> work_of_;
  const Seconds already_;  // that the run had gone on for before
  const std::string output_file_;
  const Clock::time_point began_ = Clock::now();
  const troupe::detail::ObjectPtr cluster_end_ = troupe::detail::cluster_end();
  bool cluster_ended_ = false;  // the search has been told
  detail::CheckpointOrigins origins_;
  KnownNodes nodes_;
  Slots slots_;
  Attempts attempts_;
  std::deque<GangEvent> events_;
  std::deque<Held> held_;  // in the order in which they failed
  std::deque<Where> where_;
};

}  // namespace troupe::tune
