#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/report_line.hpp"
#include "sweep/scalar_events.hpp"

namespace troupe::launch {

/// Finds what one trial reports: in the lines that rank 0's program prints, and in the event files
/// that the program writes. Knows what is said of a program that reports nothing. Owned and called
/// by the host of the trial's first ranks, on one thread.
class TrialReports {
 public:
  struct Options {
    std::string metric;   ///< a report without it is none
    std::string pattern;  ///< of ReportReader
    /// Where event files are read; empty: none are.
    std::string event_folder;
  };
  explicit TrialReports(Options options);

  /// The report in a line; none where the line has none of the metric. Throws std::invalid_argument
  /// for a line that means to report and cannot be read.
  std::optional<ReportLine> in_line(std::string_view line);
  /// Reports that have come into event files since the last call. `now`: looks at the folder at
  /// once, and else twice a second at most.
  std::vector<ReportLine> in_event_files(bool now);
  /// What the log of the program is to say about lines that were not searched wholly: each reason
  /// once. Empty: there is nothing to say.
  std::string take_notice();

  bool has_any() const { return has_any_; }
  /// Why a program that has ended has not reported, and what to change. `log`: the file with its
  /// output; empty: there is none.
  std::string why_none(const std::string& log) const;

 private:
  bool has_metric(const Metrics& metrics);

  const Options options_;
  const ReportReader reader_;
  ScalarEvents events_;
  bool has_any_ = false;
  std::set<std::string> others_;   // metrics of reports that lack the sweep's
  std::set<std::string> notices_;  // all that there have been
  std::string notice_;             // that nobody has taken yet
};

}  // namespace troupe::launch
