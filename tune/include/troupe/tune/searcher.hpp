#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/tune/decision.hpp>
#include <troupe/tune/objective.hpp>
#include <troupe/tune/space.hpp>

namespace troupe::tune {

struct Later {};   ///< none until the next event: the search has as much under way as it wants
struct NoMore {};  ///< none any more
/// What a trial is to run with.
using Suggestion = std::variant<Configuration, Later, NoMore>;

/// How a trial ended.
struct TrialEnd {
  std::optional<double> best = {};  ///< that it reported; none where nothing was finite
  std::optional<double> last = {};  ///< in its last report with the metric, also where not finite
  std::int64_t t = 0;               ///< reports that it made
  bool errored = false;
  bool stopped = false;  ///< by the scheduler or with the run, before its function returned
  /// Of a run with several objectives: the value of each in the trial's last report that has them
  /// all, in the order of SearchSetup::objectives, also where not finite; else empty.
  std::vector<double> values = {};
  double violation = 0;  ///< of the constraints in that report, as Trial::violation
};

/// Proposes configurations. Pure: no clock, no file, no random source but its seed. Lives in the
/// driver, used by one thread. Asked for trials 0, 1, 2, ... in this order, until each was given
/// its configuration. A function of (its options, the setup, the order of the calls).
class Searcher {
 public:
  virtual ~Searcher() = default;

  /// The configuration of a trial. Changes nothing of the searcher unless it answers with one: a
  /// call that answers otherwise leaves no event, and may be made any number of times.
  virtual Suggestion suggest(TrialId trial) = 0;
  /// In place of suggest(trial): the trial runs, or ran long ago, with a configuration of the space
  /// that the user named. A search that does not learn ignores it.
  virtual void give(TrialId /*trial*/, const Configuration& /*configuration*/) {}
  /// The trial has made report t, with this value of the metric, which may be not finite. A search
  /// that does not learn while trials run ignores it.
  virtual void on_report(TrialId /*trial*/, std::int64_t /*t*/, double /*value*/) {}
  /// The trial is over. A search that does not learn ignores it.
  virtual void on_end(TrialId /*trial*/, const TrialEnd& /*end*/) {}
  /// True: it answers Later until all of some trials are over. No scheduler may pause them then.
  virtual bool waits_for_ends() const { return false; }
  /// A run of fewer trials has too few for one configuration, and nothing is suggested to it. More
  /// than 1 where each configuration is that of several trials.
  virtual std::uint64_t least_trials() const { return 1; }
  /// How many it will have suggested in all; none: that is not known.
  virtual std::optional<std::uint64_t> size() const { return std::nullopt; }

  /// Everything that decides the coming suggestions, as JSON.
  virtual std::string save() const = 0;
  /// Takes up what save() wrote, also one with fewer trials. Throws std::invalid_argument if another
  /// search (space, seed, more trials) wrote it.
  virtual void load(std::string_view saved) = 0;
};

/// Draws every field on its own (Bergstra and Bengio, 2012). Trial i's configuration is a function
/// of (seed, i) alone, and a field's value of (seed, i, its name): a field more in the space leaves
/// the others' values as they were. A grid draws like a choice.
class RandomSearcher final : public Searcher {
 public:
  RandomSearcher(SearchSpace space, std::uint64_t seed, std::uint64_t trials);
  Suggestion suggest(TrialId trial) override;
  std::optional<std::uint64_t> size() const override { return trials_; }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  SearchSpace space_;
  std::uint64_t seed_;
  std::uint64_t trials_;
};

/// Walks through the cartesian product of all grids, the first field fastest, and then again; the
/// other fields are drawn anew for every trial. Ends after `trials`, or after `samples` walks where
/// `trials` is 0.
class GridSearcher final : public Searcher {
 public:
  /// Throws std::invalid_argument if the product has more than 10^9 points, or `samples` and
  /// `trials` are both 0.
  GridSearcher(SearchSpace space, std::uint64_t seed, std::uint64_t samples,
               std::uint64_t trials = 0);
  Suggestion suggest(TrialId trial) override;
  /// The walk goes on behind it.
  void give(TrialId trial, const Configuration& configuration) override;
  std::optional<std::uint64_t> size() const override { return given_ + trials_; }
  std::string save() const override;
  void load(std::string_view saved) override;

  std::uint64_t points() const { return points_; }  ///< of the product; 1 without a grid
  std::uint64_t trials() const { return trials_; }  ///< in all, without those that were given

 private:
  SearchSpace space_;
  std::uint64_t seed_;
  std::uint64_t points_ = 1;
  std::uint64_t trials_;
  std::uint64_t given_ = 0;
};

/// What a searcher is made for.
struct SearchSetup {
  SearchSpace space = {};
  Objective objective = {};
  std::uint64_t seed = 0;
  std::uint64_t trials = 0;   ///< that it may suggest in all; 0: the options name none
  std::uint64_t samples = 1;  ///< of every grid point, where `trials` is 0
  /// Of a run with several objectives all of them, `objective` first; else empty.
  std::vector<Objective> objectives = {};
  std::vector<Constraint> constraints = {};  ///< of a run with several objectives
};

/// Makes the searcher of a run. Throws std::invalid_argument, naming the field, for a space that the
/// searcher cannot search.
using SearcherFactory = std::function<std::unique_ptr<Searcher>(const SearchSetup& setup)>;

}  // namespace troupe::tune
