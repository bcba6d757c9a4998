#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "output/trackers/wall_clock.hpp"
#include "text/json.hpp"

namespace troupe::tune {

/// A run in MLflow: of a trial; none: of the search, the parent of all others.
using RunKey = std::optional<TrialId>;
/// Parameters and tags, as MLflow has them.
using Texts = std::vector<std::pair<std::string, std::string>>;

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
/// 3. What the server refuses is counted and not told again; what it does not answer is.
/// 4. Once the experiment or the parent is refused, there is nowhere to tell anything: nothing more
///    is told, and all of it counts as refused.
class Outbox {
 public:
  // Limits of the REST API on one request.
  static constexpr std::size_t kMostMetrics = 900;  ///< with parameters and tags, 1000 entities
  static constexpr std::size_t kMostTexts = 50;     ///< 100 parameters and 100 tags

  struct Report {
    std::uint64_t number = 0;  ///< among those of its run, ascending
    std::int64_t step = 0;
    std::int64_t time_ms = 0;
    Metrics metrics = {};
    std::uint64_t age = 0;  ///< the lowest came first
  };

  struct Request {
    enum class Kind : std::uint8_t { FindExperiment, CreateExperiment, CreateRun, Log, Update };
    Kind kind = Kind::Log;
    std::string path = {};
    std::string body = {};  ///< empty: a GET
    RunKey run = {};
    std::vector<Report> reports = {};  ///< in it, as are these
    Texts params = {};
    Texts tags = {};
    std::string status = {};
  };

  struct Answer {
    enum class Kind : std::uint8_t { Taken, Refused, None };
    Kind kind = Kind::None;
    Json content = {};      ///< of one that was taken
    std::string code = {};  ///< MLflow's error code, of one that was refused
  };

  Outbox(std::string experiment, std::size_t most_waiting);

  /// A line that answered() gave an earlier driver, before all else.
  void load(const Json& line);
  /// A run that is to be there. Does nothing where it was begun before.
  void begin_run(RunKey run, const std::string& name, WallTime start, Texts params, Texts tags);
  /// `number`: ascending in a run. Names of metrics are made such as MLflow takes.
  void report(RunKey run, std::uint64_t number, std::int64_t step, WallTime wall,
              const Metrics& metrics);
  /// The status that the run is to have: RUNNING, FINISHED, FAILED or KILLED; `tags` come with an
  /// end that the server does not know.
  void set_status(RunKey run, const std::string& status, WallTime wall, Texts tags = {});

  void add_tags(RunKey run, Texts tags);

  /// What to tell next; none: nothing for now.
  std::optional<Request> next();
  /// -> what to write down, so that a later driver does not tell it again; null: nothing. Of a
  /// request that is refused all that it tells is given up. An answer whose content is not that of
  /// the request counts as none.
  Json answered(Request request, const Answer& answer);

  /// Nothing is left to be told, and nothing on its way.
  bool is_empty() const;
  /// That wait or are on their way.
  std::size_t waiting() const { return waiting_; }
  std::size_t dropped() const { return dropped_; }
  std::size_t refused() const { return refused_; }
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
    Texts tags = {};    // likewise
    std::deque<Report> reports = {};
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
  Request find_experiment() const;
  Request create(RunKey key, const Run& run) const;
  Request log(RunKey key, Run& run);
  Request update(RunKey key, const Run& run) const;
  static void note_done(Run& run, const Request& request);
  void put_back(Request request);
  Json take(const Request& request, const Json& content);
  void refuse(const Request& request, const std::string& code);
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
};

/// With what MLflow takes in the name of a metric or a parameter: letters, digits, "_-./: ".
std::string mlflow_name(std::string_view name);

}  // namespace troupe::tune
