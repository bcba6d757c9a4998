#include "list/table.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "store/types.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;

/// Letters, and not bytes of UTF-8.
std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xc0) != 0x80; }));
}

std::string title(std::string key) {
  std::ranges::transform(key, key.begin(), [](unsigned char letter) {
    return letter == '_' ? ' ' : static_cast<char>(std::toupper(letter));
  });
  return key;
}

bool is_bytes(const std::string& key) {
  static const std::set<std::string> kBytes{"used", "capacity", "pinned",
                                            "kept", "spilled",  "bytes"};
  return kBytes.contains(key);
}

std::string list_of(const json& values) {
  std::string text;
  for (const auto& [name, value] : values.items()) {
    text += text.empty() ? "" : ", ";
    if (values.is_object()) text += name + " ";
    text += name == "memory" ? fmt::format("{:.1f} GB", value.get<double>()) : cell("", value);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::string cell(const std::string& key, const json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.empty() ? "-" : text;
  }
  if (value.is_structured()) return list_of(value);
  if (key == "waits" || key == "runs") return fmt::format("{:.1f} s", value.get<double>());
  if (is_bytes(key)) return store::format_bytes(value.get<std::uint64_t>());
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  return value.dump();
}

std::string table(const std::vector<std::string>& columns, const json& rows) {
  std::vector<std::vector<std::string>> lines(1);
  for (const auto& key : columns) lines.front().push_back(title(key));
  for (const auto& row : rows) {
    auto& line = lines.emplace_back();
    for (const auto& key : columns) line.push_back(cell(key, row.at(key)));
  }
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], letters(line[i]));
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (i + 1 < line.size()) out.append(widths[i] - letters(line[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace troupe::cli
