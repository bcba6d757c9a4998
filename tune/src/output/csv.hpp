#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "output/append_file.hpp"

namespace troupe::tune {

/// A record as RFC 4180 has it: fields with a comma, a quote or a line end are quoted, quotes in
/// them doubled. Ends in "\n", not "\r\n", which every reader takes and line tools like better.
std::string csv_record(const std::vector<std::string>& fields);

/// The text of a CSV file with another header and `more` empty fields at the end of each of its
/// other records.
std::string widened_csv(std::string_view csv, const std::vector<std::string>& header,
                        std::size_t more);

/// A CSV file that grows by records, and to the right when a record has a column that the file
/// lacks: then it is written anew, with empty fields in the records before. Records that a full
/// disk does not take are kept and follow, like those of an AppendFile.
class CsvFile {
 public:
  using Cell = std::pair<std::string, std::string>;  ///< column, value

  CsvFile(std::filesystem::path path, std::vector<std::string> columns);
  /// Of an earlier run: the file with its own columns and its first `rows` records; where it has
  /// fewer, those. One that is not there begins with `columns`. Throws std::runtime_error with the
  /// path and the cause.
  static CsvFile go_on(std::filesystem::path path, std::vector<std::string> columns,
                       std::uint64_t rows);
  /// Columns that the record lacks stay empty; of a column that stands in it twice, the last value
  /// counts.
  /// It is in the file after the next flush() at the latest.
  void append(std::vector<Cell> record);
  /// Tries to write what is kept. -> true if nothing is left.
  bool flush();
  /// Records that the file has, with what is kept.
  std::uint64_t rows() const { return rows_; }
  const std::string& trouble() const {
    return wide_trouble_.empty() ? file_.trouble() : wide_trouble_;
  }

 private:
  void write_waiting();
  void widen(const std::vector<Cell>& record);
  void write(const std::vector<Cell>& record);

  struct Beginning {  // of a file that is there
    std::vector<std::string> columns = {};
    std::uint64_t rows = 0;
  };
  CsvFile(std::filesystem::path path, Beginning beginning);

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  std::uint64_t rows_ = 0;
  AppendFile file_;
  std::deque<std::vector<Cell>> waiting_;  // for the file to be written anew with their columns
  std::string wide_trouble_;               // of that
};

}  // namespace troupe::tune
