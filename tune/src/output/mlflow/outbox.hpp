#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "output/mlflow/refused_batch.hpp"
#include "output/mlflow/request.hpp"
#include "output/trackers/wall_clock.hpp"
#include "text/json.hpp"

namespace troupe::tune {

/// What an MLflow server has yet to be told of a search, as a pure state machine: no socket, clock
/// or file. What is told comes out as requests, one for each run at a time; the answer to each goes
/// back in. Used by one thread.
///
///   experiment unknown -> found, or made -> the parent is made -> a trial's run is made, told its
///   parameters and reports in their order, in batches, and its status
///
/// 1. A report that the server has taken, by an answer or by what an earlier driver wrote down, is
///    not told again.
/// 2. No more than `most_waiting` values wait: the oldest are dropped first, and counted.
/// 3. What the server refuses is counted and not told again; what it does not answer is. A batch of
///    several names that is refused for what it tells is told in parts before more of its run
///    (RefusedBatch): of these 1 holds once all are answered.
/// 4. Once the experiment or the parent is refused, there is nowhere to tell anything: nothing more
///    is told, and all of it counts as refused.
/// 5. A name is told no more, in any run, once the server has refused it alone and taken another one
///    of the same batch, and has never taken that name: what has it counts as refused.
class Outbox {
 public:
  // Limits of the REST API on one request.
  static constexpr std::size_t kMostMetrics = 900;  ///< with parameters and tags, 1000 entities
  static constexpr std::size_t kMostTexts = 50;     ///< 100 parameters and 100 tags

  using Report = MlflowReport;
  using Request = MlflowRequest;

  struct Answer {
    enum class Kind : std::uint8_t { Taken, Refused, None };
    Kind kind = Kind::None;
    Json content = {};      ///< of one that was taken
    std::string code = {};  ///< MLflow's error code, of one that was refused
    /// It was refused for what it tells, and not for where that is told or by whom.
    bool is_of_content = true;
  };

  Outbox(std::string experiment, std::size_t most_waiting);

  /// A line that answered() gave an earlier driver, before all else.
  void load(const Json& line);
  /// A run that is to be there. Does nothing where it was begun before.
  void begin_run(RunKey run, const std::string& name, WallTime start, Texts params, Texts tags);
  /// `number`: ascending in a run.
  void report(RunKey run, std::uint64_t number, std::int64_t step, WallTime wall,
              const Metrics& metrics);
  /// The status that the run is to have: RUNNING, FINISHED, FAILED or KILLED; `tags` come with an
  /// end that the server does not know.
  void set_status(RunKey run, const std::string& status, WallTime wall, Texts tags = {});

  void add_tags(RunKey run, Texts tags);

  /// What to tell next; none: nothing for now.
  std::optional<Request> next();
  /// -> what to write down, so that a later driver does not tell it again; null: nothing. An answer
  /// whose content is not that of the request counts as none.
  Json answered(Request request, const Answer& answer);

  /// Nothing is left to be told, and nothing on its way.
  bool is_empty() const;
  /// That wait or are on their way.
  std::size_t waiting() const { return waiting_; }
  std::size_t dropped() const { return dropped_; }
  std::size_t refused() const { return refused_; }
  /// That are told no more, as 5 says.
  const std::set<EntityName>& refused_names() const { return refused_names_; }
  /// Nothing more is told, as 4 says.
  bool has_given_up() const { return has_given_up_; }
  /// Not all that is to be told of them has been taken.
  std::size_t runs_behind() const;
  /// Empty: it is not known.
  const std::string& id_of(RunKey run);

 private:
  struct Run {
    std::string id = {};
    std::string name = {};
    std::int64_t start_ms = 0;
    Texts params = {};  // to be told
    Texts tags = {};    // to be told
    std::deque<Report> reports = {};
    std::optional<RefusedBatch> refused = {};  // to be told in parts
    std::uint64_t done = 0;  // the number of the last report that is told, dropped or refused
    std::string status = "RUNNING";
    std::string told = "RUNNING";
    std::int64_t end_ms = 0;
    bool is_begun = false;
    bool is_described = false;  // parameters and first tags are told
    bool is_queued = false;
    bool is_asked = false;  // a request of it is on its way
    bool is_given_up = false;

    bool has_work() const;
  };

  void mark(RunKey key);
  void drop_oldest();
  Request create(RunKey key, const Run& run) const;
  Request log(RunKey key, Run& run);
  Request batch_of(RunKey key, Run& run);
  static void note_done(Run& run, std::uint64_t report);
  void put_back(Request request);
  Json take(const Request& request, const Json& content);
  Json take_batch(Run& run, const Request& request, Json line);
  Json refuse(const Request& request, const Answer& answer);
  Json end_refused_batch(Run& run, Json line);
  void tell_no_more(const EntityName& name);
  void leave_out_refused(Texts& texts, EntityName::Kind kind) const;
  std::size_t leave_out_refused(Metrics& metrics) const;
  std::size_t give_up(Run& run);
  void give_up_all();

  std::string experiment_;
  std::size_t most_waiting_;
  std::string experiment_id_;
  bool is_to_be_made_ = false;  // the experiment
  bool is_asked_ = false;       // for it
  bool has_given_up_ = false;
  std::map<RunKey, Run> runs_;
  std::deque<RunKey> queue_;
  std::map<std::uint64_t, RunKey> ages_;  // of the reports that wait
  std::uint64_t reports_ = 0;
  std::size_t waiting_ = 0;
  std::size_t dropped_ = 0;
  std::size_t refused_ = 0;
  std::set<EntityName> taken_names_;
  std::set<EntityName> refused_names_;
};

}  // namespace troupe::tune
