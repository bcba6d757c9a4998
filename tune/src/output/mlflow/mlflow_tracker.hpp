#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <troupe/tune/mlflow.hpp>

#include "output/mlflow/delivered_file.hpp"
#include "output/mlflow/http_client.hpp"
#include "output/mlflow/outbox.hpp"
#include "output/trackers/tracker.hpp"

namespace troupe::tune {

/// Tells an MLflow server of a search: a run for it, and below that one for each trial.
///
/// Used by the search's thread, whose ticks move the requests on: each tick takes them as far as
/// they go without waiting, four at once. That costs a quiet search a quarter of a second for each
/// step of a request, and needs no thread; conclude() moves them on as fast as the server answers.
/// A server that is away is asked again after half a second, and after twice as long each time, up
/// to 30 s. What the server refuses, or sends elsewhere, is not sent again, but for the first
/// requests, which a proxy may answer so while the server behind it starts.
class MlflowTracker final : public Tracker {
 public:
  static constexpr std::chrono::seconds kRequestTime{
      30};  ///< for one request, until it counts as unanswered

  struct Run {
    std::filesystem::path folder = {};  ///< empty: nothing is known of earlier drivers
    std::string name = {};
    Texts params = {};  ///< of the search
    Objective objective = {};
    std::string sweep_file = {};         ///< of `troupe tune`; empty: it is a program's own search
    std::filesystem::path storage = {};  ///< of the runs of that sweep
  };
  /// Throws std::invalid_argument for a URL or a variable that cannot be, and std::runtime_error
  /// where the folder cannot be written or libcurl is missing.
  MlflowTracker(const Mlflow& options, Run run);
  /// A run that was not concluded has failed: the server is told, if it takes that within 2 s.
  ~MlflowTracker() override;
  MlflowTracker(const MlflowTracker&) = delete;
  MlflowTracker& operator=(const MlflowTracker&) = delete;

  void see(const Event& event, const Trial& trial, WallTime wall) override;
  Notices tick() override;
  /// Waits until the server has taken all, or for `options.deadline`.
  Notices conclude(const Experiment& experiment, WallTime wall, const Say& say) override;

 private:
  using Clock = std::chrono::steady_clock;

  void end(const Trial& trial, WallTime wall);
  void end_search(const Experiment& experiment, WallTime wall);
  bool move_on();
  void deliver_until(Clock::time_point end);
  void on_answer(Outbox::Request request, const HttpAnswer& http);
  void on_refusal(Outbox::Request::Kind kind, unsigned status, const std::string& code,
                  const std::string& why);
  bool may_be_starting(const Outbox::Request& request, unsigned status, const std::string& code);
  void on_trouble(const std::string& why);
  void note(const std::string& text);
  std::string how_to_send_later() const;
  void sum_up();

  const Mlflow options_;
  const Run run_;
  const std::string name_;  // "MLflow at http://..."
  Outbox outbox_;
  DeliveredFile delivered_;
  std::map<TrialId, std::uint64_t> reports_of_;
  std::uint64_t reports_ = 0;
  std::set<TrialId> ended_;
  RunKey best_;  // once the search is over
  bool is_begun_ = false;
  bool is_concluded_ = false;
  bool has_dropped_ = false;                            // and said it
  bool has_taken_ = false;                              // a request of this driver
  std::optional<Clock::time_point> misdirected_since_;  // by what may_be_starting() asks again for
  bool is_misdirected_ = false;  // another URL, or who asks, may have more taken
  std::set<Outbox::Request::Kind> refused_;
  Clock::time_point retry_at_ = {};
  Clock::duration pause_{};  // before the next try; 0: there is no trouble
  Clock::duration most_pause_;
  Notices notices_;  // for the next tick
  HttpClient http_;
};

}  // namespace troupe::tune
