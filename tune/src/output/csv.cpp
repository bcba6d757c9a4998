#include "output/csv.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace troupe::tune {
namespace {

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

}  // namespace

std::string csv_record(const std::vector<std::string>& fields) {
  std::string record;
  for (const auto& field : fields) record += (record.empty() && &field == &fields.front() ? "" : ",") + quoted(field);
  return record + '\n';
}

std::string widened_csv(std::string_view csv, const std::vector<std::string>& header, std::size_t more) {
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

std::size_t CsvFile::column(const std::string& name) {
  const auto at = std::ranges::find(columns_, name);
  const auto index = static_cast<std::size_t>(at - columns_.begin());
  if (at == columns_.end()) columns_.push_back(name);
  return index;
}

void CsvFile::append(const std::vector<Cell>& record) {
  const auto width = columns_.size();
  std::vector<std::string> fields(width);
  for (const auto& [name, value] : record) {
    const auto index = column(name);
    fields.resize(columns_.size());
    fields[index] = value;
  }
  if (columns_.size() > width) {
    replace_file(path_, widened_csv(content_of(path_), columns_, columns_.size() - width));
    file_ = AppendFile(path_);
  }
  file_.append(csv_record(fields));
}

}  // namespace troupe::tune
