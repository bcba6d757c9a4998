#include "deepspeed/block.hpp"

#include <algorithm>
#include <cmath>
#include <locale>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <boost/algorithm/string/predicate.hpp>

#include "config/name.hpp"
#include "config/nearest.hpp"

namespace troupe::train::deepspeed {
namespace {

using nlohmann::json;

constexpr std::size_t kMostQuoted = 64;
constexpr double kMostInteger = 9007199254740992;  // 2^53: a double has each one up to there

/// What it switches on is not done.
bool is_off(const json& value) {
  if (value.is_null() || value.empty()) return true;  // of a number, empty() is false
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  if (value.is_string()) return value.get_ref<const std::string&>() == "none";
  return value.is_object() && std::ranges::all_of(value, is_off);
}

std::string quoted(const json& value) {
  return config::printable(value.dump(-1, ' ', true, json::error_handler_t::replace), kMostQuoted);
}

}  // namespace

bool is_same_word(std::string_view one, std::string_view other) {
  return boost::algorithm::iequals(one, other, std::locale::classic());
}

Block::Block(const json& object, std::string path, Reading& reading)
    : object_(object), path_(std::move(path)), reading_(reading) {}

void Block::refuse(std::string_view key, const std::string& why) const {
  throw std::invalid_argument(fmt::format("{}: '{}{}' {}", reading_.name, path_,
                                          config::printable(std::string(key), kMostQuoted), why));
}

const json* Block::find(std::string_view key) {
  asked_.emplace(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json* Block::value(std::string_view key) {
  const auto* found = find(key);
  if (found != nullptr && found->is_string() && found->get_ref<const std::string&>() == "auto") {
    refuse(
        key,
        "is \"auto\", which the Trainer of Hugging Face replaces by a value of its own arguments: "
        "write the value");
  }
  return found;
}

std::optional<double> Block::number(std::string_view key) {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) refuse(key, fmt::format("is {}: expected a number", quoted(*found)));
  return found->get<double>();
}

std::optional<std::int64_t> Block::integer(std::string_view key, std::int64_t low,
                                           std::int64_t high) {
  const auto found = number(key);
  if (!found) return std::nullopt;
  if (std::trunc(*found) != *found || std::abs(*found) > kMostInteger)
    refuse(key, fmt::format("is {}: expected an integer of at most 2^53", quoted(*value(key))));
  const auto integer = static_cast<std::int64_t>(*found);
  const bool has_end = high != std::numeric_limits<std::int64_t>::max();
  if (integer < low || integer > high)
    refuse(key, fmt::format("is {}: expected {}{}", integer, low,
                            has_end ? fmt::format(" to {}", high) : " or more"));
  return integer;
}

std::optional<bool> Block::flag(std::string_view key) {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean())
    refuse(key, fmt::format("is {}: expected true or false", quoted(*found)));
  return found->get<bool>();
}

std::optional<std::string> Block::text(std::string_view key) {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) refuse(key, fmt::format("is {}: expected a text", quoted(*found)));
  return found->get<std::string>();
}

std::optional<Block> Block::block(std::string_view key) {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_object())
    refuse(key, fmt::format("is {}: expected an object, {{...}}", quoted(*found)));
  return Block(*found, fmt::format("{}{}.", path_, key), reading_);
}

Block Block::block_or_empty(std::string_view key) {
  static const json kEmpty = json::object();
  if (auto found = block(key)) return *std::move(found);
  return {kEmpty, fmt::format("{}{}.", path_, key), reading_};
}

void Block::have_no_effect(std::span<const std::string_view> keys) {
  for (const auto key : keys) {
    if (find(key) != nullptr) reading_.without_effect.push_back(fmt::format("{}{}", path_, key));
  }
}

void Block::are_off(std::span<const std::string_view> switches, std::string_view instead) {
  for (const auto each : switches) {
    const auto dot = each.find('.');
    const auto key = each.substr(0, dot);
    const auto* const found = find(key);
    if (found == nullptr) continue;
    const auto* decides = found;
    if (dot != each.npos && found->is_object()) {
      const auto inside = found->find(each.substr(dot + 1));
      decides = inside == found->end() ? nullptr : &*inside;
    }
    if (decides != nullptr && !is_off(*decides))
      refuse(key, fmt::format("is {}, and Troupe does not have this{}", quoted(*found), instead));
  }
}

void Block::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (asked_.contains(key)) continue;
    refuse(key, fmt::format("is no key of DeepSpeed 0.19 that Troupe knows{}",
                            config::nearest_in_words(key, {asked_.begin(), asked_.end()})));
  }
}

}  // namespace troupe::train::deepspeed
