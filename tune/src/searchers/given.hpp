#pragma once

#include <memory>
#include <vector>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// A searcher behind what the user gave: it is told the known results, then the configurations to
/// try first take the first trials, then it is asked. Its own numbers of trials begin with the known
/// results, which are no trials of the run.
class GivenSearcher final : public Searcher {
 public:
  struct Known {
    Configuration config = {};
    double value = 0;
    std::vector<double> values = {};  ///< of a run with several objectives
    double violation = 0;
  };

  /// `trials`: of the run in all; 0: as many as there are first ones, and those of `search`.
  GivenSearcher(std::unique_ptr<Searcher> search, std::vector<Configuration> first,
                std::vector<Known> known, std::uint64_t trials);

  Suggestion suggest(TrialId trial) override;
  void on_report(TrialId trial, std::int64_t t, double value) override;
  void on_end(TrialId trial, const TrialEnd& end) override;
  std::optional<std::uint64_t> size() const override;
  bool waits_for_ends() const override { return search_->waits_for_ends(); }
  std::uint64_t least_trials() const override { return search_->least_trials(); }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  std::unique_ptr<Searcher> search_;
  std::vector<Configuration> first_;
  std::vector<Known> known_;
  std::uint64_t trials_;
};

}  // namespace troupe::tune
