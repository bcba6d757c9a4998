#pragma once

#include <memory>
#include <vector>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// A searcher over all searched fields, behind the program's conditions and functions: it is asked
/// for a value of each, and told nothing of those that its trial leaves out. Where all fields are
/// grids or constants, a point that comes to the same as an earlier one is left out.
class CompletedSearcher final : public Searcher {
 public:
  /// `points`: of the grid, where each is walked to once; 0: points that come to the same stay.
  /// Throws what the program's functions throw.
  CompletedSearcher(std::unique_ptr<Searcher> search, Completion completion, std::uint64_t points);

  Suggestion suggest(TrialId trial) override;
  void on_report(TrialId trial, std::int64_t t, double value) override;
  void on_end(TrialId trial, const TrialEnd& end) override;
  bool waits_for_ends() const override { return search_->waits_for_ends(); }
  std::uint64_t least_trials() const override { return search_->least_trials(); }
  std::optional<std::uint64_t> size() const override;
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  TrialId inner(TrialId trial) const;

  std::unique_ptr<Searcher> search_;
  Completion completion_;
  std::vector<TrialId> different_;  // points of the grid; empty: all trials of `search_`
};

}  // namespace troupe::tune
