#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/tune/decision.hpp>
#include <troupe/tune/space.hpp>

namespace troupe::tune {

/// Proposes configurations. Pure: no clock, no file, no random source but its seed. Lives in the
/// driver, used by one thread. Asked for trials 0, 1, 2, ... in this order, once each.
class Searcher {
 public:
  virtual ~Searcher() = default;

  /// The configuration of a trial; empty once there is none left.
  virtual std::optional<Configuration> suggest(TrialId trial) = 0;
  /// A trial is over: the best value of the metric that it reported, if any. A search that does not
  /// learn ignores it.
  virtual void on_end(TrialId /*trial*/, std::optional<double> /*best*/) {}
  /// How many it will have suggested in all; none: that is not known.
  virtual std::optional<std::uint64_t> size() const { return std::nullopt; }

  /// Everything that decides the coming suggestions, as JSON.
  virtual std::string save() const = 0;
  /// Takes up what save() wrote. Throws std::invalid_argument if another search (space, seed, size)
  /// wrote it.
  virtual void load(std::string_view saved) = 0;
};

/// Draws every field on its own (Bergstra and Bengio, 2012). Trial i's configuration is a function
/// of (seed, i) alone, and a field's value of (seed, i, its name): a field more in the space leaves
/// the others' values as they were. A grid draws like a choice.
class RandomSearcher final : public Searcher {
 public:
  RandomSearcher(SearchSpace space, std::uint64_t seed, std::uint64_t trials);
  std::optional<Configuration> suggest(TrialId trial) override;
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
  std::optional<Configuration> suggest(TrialId trial) override;
  std::optional<std::uint64_t> size() const override { return trials_; }
  std::string save() const override;
  void load(std::string_view saved) override;

  std::uint64_t points() const { return points_; }  ///< of the product; 1 without a grid
  std::uint64_t trials() const { return trials_; }  ///< in all

 private:
  SearchSpace space_;
  std::uint64_t seed_;
  std::uint64_t points_ = 1;
  std::uint64_t trials_;
};

/// Makes the searcher of a run from (space, seed, number of trials).
using SearcherFactory = std::function<std::unique_ptr<Searcher>(
    SearchSpace space, std::uint64_t seed, std::uint64_t trials)>;

}  // namespace troupe::tune
