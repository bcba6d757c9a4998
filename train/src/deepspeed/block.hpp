#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace troupe::train::deepspeed {

/// Whether the texts are the same but for capital letters, of ASCII.
bool is_same_word(std::string_view one, std::string_view other);

/// What is read of one configuration.
struct Reading {
  std::string name;                         ///< of it, in errors
  std::vector<std::string> without_effect;  ///< the keys so far, with the blocks that they are in
};

/// One object of a configuration, of which each key is asked for once. finish() refuses the keys
/// that nobody asked for. A key whose value is null is not there.
///
/// All throw std::invalid_argument, which names the key. Used by one thread; refers to its
/// arguments.
class Block {
 public:
  /// `path`: of keys, with a dot behind it; empty: the configuration itself.
  Block(const nlohmann::json& object, std::string path, Reading& reading);

  /// None: the key is not there.
  std::optional<double> number(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key,
                                      std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t high = std::numeric_limits<std::int64_t>::max());
  std::optional<bool> flag(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<Block> block(std::string_view key);
  /// An empty one where the key is not there.
  Block block_or_empty(std::string_view key);
  /// nullptr: the key is not there. Refuses "auto".
  const nlohmann::json* value(std::string_view key);

  /// They may be there with any value, and are noted.
  void have_no_effect(std::span<const std::string_view> keys);
  /// Refuses each of these keys where it is switched on. KEY is off with a value that is false, 0,
  /// "none", an empty list, or a block of such values alone. BLOCK.KEY is a block that is off where
  /// KEY in it is off or is not there. `instead`: what to do, behind the error.
  void are_off(std::span<const std::string_view> switches, std::string_view instead);
  void finish() const;

  /// Throws the error "NAME: 'PATH.KEY' WHY".
  [[noreturn]] void refuse(std::string_view key, const std::string& why) const;

 private:
  const nlohmann::json* find(std::string_view key);

  const nlohmann::json& object_;
  std::string path_;
  Reading& reading_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace troupe::train::deepspeed
