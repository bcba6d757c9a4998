#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <troupe/tune/scalar.hpp>

namespace troupe::launch {

/// Throws Refused: "FILE:LINE:COLUMN: WHY".
[[noreturn]] void refuse_at(const std::string& file, const toml::source_region& place,
                            const std::string& why);

/// A table of a TOML file, of which each key is asked for by name and type. What is of another type
/// is refused with its line and column; so is, by finish(), a key that nobody asked for, with the
/// nearest one that somebody did.
class TomlTable {
 public:
  /// `path`: its name within the file, for people; empty: the file's own.
  TomlTable(const std::string& file, const toml::table& table, std::string path)
      : file_(file), table_(table), path_(std::move(path)) {}

  bool has(const std::string& key);
  bool is_list(const std::string& key);
  std::optional<std::string> text(const std::string& key);
  std::optional<std::int64_t> integer(const std::string& key, std::int64_t least = 0,
                                      std::int64_t most = 1'000'000'000);
  /// Finite, and in these bounds.
  std::optional<double> number(const std::string& key,
                               double least = std::numeric_limits<double>::lowest(),
                               double most = std::numeric_limits<double>::max());
  std::optional<bool> truth(const std::string& key);
  std::optional<std::vector<std::string>> texts(const std::string& key);
  std::optional<tune::Scalar> scalar(const std::string& key);
  std::optional<std::vector<tune::Scalar>> scalars(const std::string& key);
  std::optional<TomlTable> table(const std::string& key);
  std::vector<TomlTable> tables(const std::string& key);

  /// In the order of the file.
  std::vector<std::string> keys() const;
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;
  /// Of a key that must be there: points at one that may be meant for it, where there is one.
  [[noreturn]] void refuse_missing(const std::string& key, const std::string& why) const;
  /// Points at entry `index` of the list under `key`.
  [[noreturn]] void refuse(const std::string& key, std::size_t index, const std::string& why) const;
  /// Points at the key that `complaint` names, as in "tpe: .gamma is 2" or "Options::gpus must be whole"; else at `otherwise`.
  [[noreturn]] void refuse_named(const std::string& complaint, const std::string& otherwise) const;
  /// Where the key's value stands: "FILE:LINE:COLUMN".
  std::string place_of(const std::string& key) const;
  void finish() const;

 private:
  const toml::node* find(const std::string& key);
  [[noreturn]] void refuse_unknown(const toml::key& key, const std::string& hint) const;
  tune::Scalar scalar_of(const toml::node& node, const std::string& key) const;

  std::string file_;
  const toml::table& table_;
  std::string path_;
  std::set<std::string> asked_;
};

/// What the file has in place of the default that stands there.
template <class Value, class Given>
void set(Value& value, const std::optional<Given>& given) {
  if (given) value = static_cast<Value>(*given);
}

}  // namespace troupe::launch
