#include "sweep/file/toml_table.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include <troupe/tune/detail/sweep_keys.hpp>

#include "config/name.hpp"
#include "config/nearest.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {

namespace {

std::string in_words(const std::string& file, const toml::source_region& place) {
  return fmt::format("{}:{}:{}", file, place.begin.line, place.begin.column);
}

/// "max_t is 0" names max_t, and not t.
bool names(const std::string& complaint, const std::string& key) {
  for (const auto* verb : {" is ", " must "}) {
    const auto at = complaint.find(key + verb);
    if (at == std::string::npos) continue;
    const char before = at == 0 ? ' ' : complaint[at - 1];
    if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_') return true;
  }
  return false;
}

}  // namespace

void refuse_at(const std::string& file, const toml::source_region& place, const std::string& why) {
  refuse(fmt::format("{}: {}", in_words(file, place), why));
}

const toml::node* TomlTable::find(const std::string& key) {
  asked_.insert(key);
  return table_.get(key);
}

bool TomlTable::is_list(const std::string& key) {
  const auto* node = find(key);
  return node != nullptr && node->is_array();
}

bool TomlTable::has(const std::string& key) { return find(key) != nullptr; }

std::optional<std::string> TomlTable::text(const std::string& key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_string()) refuse(key, "is text: write it in quotes");
  return **node->as_string();
}

std::optional<std::int64_t> TomlTable::integer(const std::string& key, std::int64_t least,
                                               std::int64_t most) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_integer() || **node->as_integer() < least)
    refuse(key, fmt::format("is an integer, at least {}", least));
  if (**node->as_integer() > most) refuse(key, fmt::format("is at most {}", most));
  return **node->as_integer();
}

std::optional<double> TomlTable::number(const std::string& key, double least, double most) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_number()) refuse(key, "is a number");
  const double value =
      node->is_integer() ? static_cast<double>(**node->as_integer()) : **node->as_floating_point();
  if (!std::isfinite(value)) refuse(key, "is a finite number");
  if (value < least) refuse(key, fmt::format("is a number, at least {}", least));
  if (value > most) refuse(key, fmt::format("is at most {:.0f}", most));
  return value;
}

std::optional<bool> TomlTable::truth(const std::string& key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_boolean()) refuse(key, "is true or false");
  return **node->as_boolean();
}

std::optional<std::vector<std::string>> TomlTable::texts(const std::string& key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* list = node->as_array();
  std::vector<std::string> texts;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (const auto* text = list->get(i)->as_string()) texts.push_back(**text);
  }
  if (list == nullptr || texts.size() != list->size())
    refuse(key, R"(is a list of texts: ["python3", "train.py"])");
  return texts;
}

tune::Scalar TomlTable::scalar_of(const toml::node& node, const std::string& key) const {
  if (const auto* whole = node.as_integer()) return **whole;
  if (const auto* real = node.as_floating_point()) return **real;
  if (const auto* truth = node.as_boolean()) return **truth;
  if (const auto* text = node.as_string()) return **text;
  refuse(key, "holds a value that is no number, truth value or text");
}

std::optional<tune::Scalar> TomlTable::scalar(const std::string& key) {
  const auto* node = find(key);
  if (node == nullptr || node->is_table() || node->is_array()) return std::nullopt;
  return scalar_of(*node, key);
}

std::optional<std::vector<tune::Scalar>> TomlTable::scalars(const std::string& key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  const auto* list = node->as_array();
  if (list == nullptr) refuse(key, "is a list of values");
  std::vector<tune::Scalar> scalars;
  for (const auto& value : *list) scalars.push_back(scalar_of(value, key));
  return scalars;
}

std::optional<TomlTable> TomlTable::table(const std::string& key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_table()) refuse(key, fmt::format("is a table: [{}{}]", path_, key));
  return TomlTable(file_, *node->as_table(), path_ + key + ".");
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) {
  const auto* node = find(key);
  std::vector<TomlTable> tables;
  if (node == nullptr) return tables;
  const auto* list = node->as_array();
  if (list == nullptr) refuse(key, "is a list of tables: [{lr = 0.1}]");
  for (const auto& entry : *list) {
    if (!entry.is_table()) refuse(key, "is a list of tables: [{lr = 0.1}]");
    tables.emplace_back(file_, *entry.as_table(), path_ + key + ".");
  }
  return tables;
}

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::pair<toml::source_position, std::string>> found;
  for (const auto& [key, node] : table_) found.emplace_back(key.source().begin, key.str());
  std::ranges::sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> keys;
  for (auto& [place, key] : found) keys.push_back(std::move(key));
  return keys;
}

std::string TomlTable::place_of(const std::string& key) const {
  const auto* node = table_.get(key);
  return in_words(file_, node != nullptr ? node->source() : table_.source());
}

void TomlTable::refuse(const std::string& key, const std::string& why) const {
  launch::refuse(fmt::format("{}: {}{} {}", place_of(key), path_, key.empty() ? "\"\"" : key, why));
}

void TomlTable::refuse_named(const std::string& complaint, const std::string& otherwise) const {
  const auto why = "cannot be: " + tune::detail::with_sweep_keys(complaint);
  for (const auto& key : keys()) {
    if (names(complaint, key)) refuse(key, why);
  }
  refuse(otherwise, why);
}

void TomlTable::refuse(const std::string& key, std::size_t index, const std::string& why) const {
  refuse_at(file_, table_[key][index].node()->source(), fmt::format("{}{} {}", path_, key, why));
}

void TomlTable::refuse_unknown(const toml::key& key, const std::string& hint) const {
  refuse_at(file_, key.source(),
            fmt::format("there is no key {}{}{}", path_, config::printable(key.str()), hint));
}

void TomlTable::refuse_missing(const std::string& key, const std::string& why) const {
  for (const auto& [other, node] : table_) {
    const std::string name(other.str());
    const auto hint = asked_.contains(name) ? std::string() : config::nearest_in_words(name, {key});
    if (!hint.empty()) refuse_unknown(other, hint);
  }
  refuse(key, why);
}

void TomlTable::finish() const {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (!asked_.contains(name)) refuse_unknown(key, config::did_you_mean(name, known));
  }
}

}  // namespace troupe::launch
