#include "json/document.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "config/name.hpp"

namespace troupe::train {

using nlohmann::json;

namespace {

constexpr std::size_t kMostLevels = 64;

/// Looks for what nlohmann's parser lets pass: keys that stand twice, and levels without end. (Its
/// callback for keys would do, but takes time by the square of an object's members.)
class Strictness final : public nlohmann::json_sax<json> {
 public:
  explicit Strictness(const std::string& name) : name_(name) {}

  bool start_object(std::size_t) override {
    begin_level();
    return true;
  }
  bool key(std::string& key) override {
    if (!keys_.back().insert(key).second)
      throw std::invalid_argument(fmt::format(
          "{}: the key '{}' stands twice in one object; keep one", name_, config::printable(key)));
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    begin_level();
    return true;
  }
  bool end_array() override {
    keys_.pop_back();
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  /// The parser that makes the document tells of it.
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  void begin_level() {
    if (keys_.size() == kMostLevels)
      throw std::invalid_argument(
          fmt::format("{}: it has more than {} levels of objects and lists", name_, kMostLevels));
    keys_.emplace_back();
  }

  const std::string& name_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the levels that are open
};

}  // namespace

json parse_document(std::string_view text, const std::string& name, Comments comments) {
  if (text.find('\0') != text.npos)  // where the parser would end
    throw std::invalid_argument(fmt::format("{}: this is no JSON: it has a NUL byte", name));
  const bool may_have_comments = comments == Comments::Allowed;
  Strictness strictness(name);
  json document;
  try {
    json::sax_parse(text, &strictness, json::input_format_t::json, /*strict=*/true,
                    may_have_comments);
    document = json::parse(text, nullptr, /*allow_exceptions=*/true, may_have_comments);
  } catch (const json::exception& error) {
    throw std::invalid_argument(
        fmt::format("{}: this is no JSON: {}", name, config::printable(error.what())));
  }
  if (!document.is_object())
    throw std::invalid_argument(fmt::format("{}: expected an object, {{...}}", name));
  return document;
}

}  // namespace troupe::train
