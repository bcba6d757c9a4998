#include "output/csv.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in && std::filesystem::exists(path)) {
    throw std::runtime_error(
        fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  std::ostringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  return std::move(text).str();
}

/// The fields of the record that begins at `at`, which moves to the next one; none where it has no
/// end.
std::optional<std::vector<std::string>> record_at(std::string_view csv, std::size_t& at) {
  std::vector<std::string> fields(1);
  bool in_quotes = false, was_quote = false;
  for (auto i = at; i < csv.size(); ++i) {
    const char c = csv[i];
    if (c == '"') {
      if (!in_quotes && was_quote) fields.back() += c;  // doubled
      was_quote = in_quotes;
      in_quotes = !in_quotes;
      continue;
    }
    was_quote = false;
    if (in_quotes || (c != ',' && c != '\n')) {
      fields.back() += c;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      at = i + 1;
      return fields;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string csv_record(const std::vector<std::string>& fields) {
  std::string record;
  for (const auto& field : fields)
    record += (record.empty() && &field == &fields.front() ? "" : ",") + quoted(field);
  return record + '\n';
}

std::string widened_csv(std::string_view csv, const std::vector<std::string>& header,
                        std::size_t more) {
  std::string widened = csv_record(header);
  const std::string empty(more, ',');
  bool in_quotes = false, in_header = true;
  for (char c : csv) {
    if (c == '"') in_quotes = !in_quotes;
    const bool ends = c == '\n' && !in_quotes;
    if (ends && !in_header) widened += empty;
    if (!in_header) widened += c;
    if (ends) in_header = false;
  }
  return widened;
}

CsvFile::CsvFile(std::filesystem::path path, std::vector<std::string> columns)
    : path_{std::move(path)}, columns_{std::move(columns)}, file_{path_} {
  file_.append(csv_record(columns_));
}

CsvFile::CsvFile(std::filesystem::path path, Beginning beginning)
    : path_{std::move(path)},
      columns_{std::move(beginning.columns)},
      rows_{beginning.rows},
      file_{path_} {}

CsvFile CsvFile::go_on(std::filesystem::path path, std::vector<std::string> columns,
                       std::uint64_t rows) {
  const auto text = content_of(path);
  std::size_t end = 0;
  auto header = record_at(text, end);
  if (!header) {
    std::error_code ignored;  // an empty one, or the begin of a header
    std::filesystem::remove(path, ignored);
    return {std::move(path), std::move(columns)};
  }
  std::uint64_t found = 0;
  while (found < rows && record_at(text, end)) ++found;
  cut_file(path, end);
  return {std::move(path), Beginning{*std::move(header), found}};
}

/// Adds the columns of the record that the file lacks. Throws std::runtime_error, and changes
/// nothing, where it cannot.
void CsvFile::widen(const std::vector<Cell>& record) {
  const auto known = columns_.size();
  for (const auto& [name, value] : record) {
    if (std::ranges::find(columns_, name) == columns_.end()) columns_.push_back(name);
  }
  if (columns_.size() == known) return;
  try {
    replace_file(path_,
                 widened_csv(content_of(path_) + file_.kept(), columns_, columns_.size() - known));
  } catch (...) {
    columns_.resize(known);
    throw;
  }
  file_ = AppendFile(path_);
}

void CsvFile::write(const std::vector<Cell>& record) {
  widen(record);
  std::vector<std::string> fields(columns_.size());
  for (const auto& [name, value] : record) {
    fields[static_cast<std::size_t>(std::ranges::find(columns_, name) - columns_.begin())] = value;
  }
  file_.append_later(csv_record(fields));
  ++rows_;
}

void CsvFile::append(std::vector<Cell> record) {
  waiting_.push_back(std::move(record));
  write_waiting();
}

void CsvFile::write_waiting() {
  wide_trouble_.clear();
  while (!waiting_.empty() && wide_trouble_.empty()) {
    try {
      write(waiting_.front());
      waiting_.pop_front();
    } catch (const std::runtime_error& failed) {
      wide_trouble_ = failed.what();
    }
  }
}

bool CsvFile::flush() {
  write_waiting();
  return file_.flush() && waiting_.empty();
}

}  // namespace troupe::tune
