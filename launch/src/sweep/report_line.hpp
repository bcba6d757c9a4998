#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/trainable.hpp>

namespace troupe::launch {

/// What a line that a trial's program has printed reports.
struct ReportLine {
  Metrics metrics;
  std::string checkpoint;  ///< a folder, as the program names it; empty: none
};

/// Finds reports among the lines that a program prints. Pure; cheap for lines that are none.
///
/// Two forms, of which the first is always read:
///   troupe: {"loss": 0.1, "step": 3, "checkpoint": "step-3"}    numbers and truth values are metrics
///   what a regular expression of the user's finds: its named groups are the metrics
///
/// Of a line with carriage returns, as progress bars print them, only what stands behind the last one
/// is read. A report of the first form is found also behind what a program left unfinished in its
/// line.
class ReportReader {
 public:
  /// The pattern is searched for in so many bytes of a line: the time that a search takes may grow
  /// with the square of the length.
  static constexpr std::size_t kLongestSearched = std::size_t{16} << 10;

  struct Found {
    std::optional<ReportLine> report;
    /// Why the line was not searched wholly, in the same words for each such line; empty: it was.
    std::string notice;
  };

  /// `pattern`: a regular expression with named groups, (?<loss>[0-9.]+); empty: none. Throws Refused,
  /// saying where, for one that is none, or that names no group.
  explicit ReportReader(const std::string& pattern = {});
  ~ReportReader();
  ReportReader(ReportReader&&) noexcept;

  /// Throws std::invalid_argument for a line that begins as a report and is none: a
  /// program that means to report is told so.
  Found read(std::string_view line) const;
  /// Whether the pattern has a group of that name.
  bool finds(const std::string& metric) const;

 private:
  Found search(std::string_view line) const;

  struct Pattern;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace troupe::launch
