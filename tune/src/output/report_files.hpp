#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "output/append_file.hpp"
#include "output/csv.hpp"
#include "output/folder/params.hpp"
#include "text/json.hpp"

namespace troupe::tune {

/// What a run leaves in its folder. Owned by the run, used by its thread.
///
///   params.json    the search, as it is now (RunParams)
///   journal.jsonl  every event, or those since the snapshot: the state of the search is a function of both
///   snapshot.jsonl once the journal has become long: the state of the search before it (run/earlier/snapshot.hpp)
///   reports.jsonl  a report a line: trial, t, configuration, metrics, decision and why
///   reports.csv    the same as a table; configuration in columns "config/NAME", a metric in a column of its own name
///                  ("metric/NAME" where that is another column's), new columns at the right end
///   pbt.jsonl      a line for each time that a trial went on from another's checkpoint: t, from, to, the report of the
///                  donor's that it went on from, the donor's old configuration, the new one, the trial's own before, and
///                  why. `takeover` counts them for each trial: a later line of the same number is instead of the earlier
///                  one, one with "undone" takes it back
///   summary.json   at the end: the best trial and its schedule, and each trial with status, reason, error
class ReportFiles {
 public:
  /// Of a new run. Throws std::runtime_error with the path and the cause.
  static ReportFiles begin(std::filesystem::path folder, const SearchSpace& space,
                           const RunParams& params, const std::string& header);
  /// How far the files were when a snapshot was taken.
  struct Mark {
    std::uintmax_t line_bytes = 0;  ///< of reports.jsonl
    std::uint64_t rows = 0;         ///< of reports.csv
    std::uintmax_t lineage_bytes = 0;
  };
  /// How much of a journal is gone on with.
  struct Journal {
    std::size_t bytes = 0;
    std::uint64_t events = 0;  ///< of the run, by then
  };
  /// Of an earlier run that goes on: the journal without what follows that much of it, and the others as
  /// they were at the mark, for write_again(). `trials` are those of that time. Throws std::runtime_error
  /// with the path and the cause.
  static ReportFiles go_on(std::filesystem::path folder, const SearchSpace& space,
                           const Journal& journal, const Mark& mark,
                           const std::vector<Trial>& trials);

  /// Tries to write what a full disk did not take. -> why that is not all of it; empty: it is.
  std::string flush();
  /// Appends: to the journal with keep() at the latest, to the others with flush(); a driver that
  /// dies in between has the journal to make them from. What a full disk does not take is kept in
  /// memory, and follows with what is written later, or with flush().
  void write(const Event& event, const Trial* trial);
  /// Writes the journal's lines of all events until now, with one write.
  void keep() { journal_.flush(); }
  /// Of go_on: files that lack records from before the mark, which nobody has any more.
  const std::vector<std::string>& shortened() const { return shortened_; }
  /// Once flush() says that all is written.
  Mark mark() const;
  /// Begins the journal anew with this header, after so many events of the run: what it had is in a
  /// snapshot. Throws std::runtime_error with the path and the cause, and the journal is as it was.
  void begin_journal(const std::string& header, std::uint64_t events);
  std::uintmax_t journal_bytes() const { return journal_bytes_; }
  /// Everywhere but in the journal, which has the event.
  void write_again(const Event& event, const Trial* trial);
  void write_summary(const Experiment& experiment, Seconds now);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  ReportFiles(std::filesystem::path folder, CsvFile table);

  /// What the lineage's file has of a trial that has taken over another.
  struct Written {
    std::size_t count = 0;
    Takeover last = {};
  };

  void write_report(const Event& event);
  void write_lineage(const Event& event, const Trial& trial);
  void append_lineage();

  std::filesystem::path folder_;
  AppendFile journal_;
  std::uintmax_t journal_bytes_ = 0;  // with what is kept
  std::uint64_t events_ = 0;          // of the run, in its journal and before it
  AppendFile lines_;
  CsvFile table_;
  std::map<TrialId, Written> written_;
  std::optional<AppendFile> lineage_;  // from the first takeover on
  std::string lineage_text_;           // while that could not be made
  std::string lineage_trouble_;
  std::vector<std::string> shortened_;
};

/// What summary.json has: JSON, with a line end. `is_abandoned`: as for status_text().
std::string summary_text(const Experiment& experiment, Seconds now, bool is_abandoned = false);

}  // namespace troupe::tune
