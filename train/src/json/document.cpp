#include "json/document.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/name.hpp"

namespace troupe::train {

using nlohmann::json;

namespace {

constexpr std::size_t kMostLevels = 64;

/// Makes the document, and refuses what nlohmann's own maker lets pass: keys that stand twice, and
/// levels without end. (Its callback for keys would do, but takes time by the square of an object's
/// members.)
class DocumentMaker final : public nlohmann::json_sax<json> {
 public:
  DocumentMaker(const std::string& name, json& document) : name_(name), document_(document) {}

  bool start_object(std::size_t) override { return add(json::object()); }
  bool key(std::string& key) override {
    auto& members = open_.back()->get_ref<json::object_t&>();
    const auto [member, is_new] = members.emplace(std::move(key), nullptr);
    if (!is_new)
      throw std::invalid_argument(
          fmt::format("{}: the key '{}' stands twice in one object; keep one", name_,
                      config::printable(member->first)));
    member_ = &member->second;
    return true;
  }
  bool end_object() override { return end_level(); }
  bool start_array(std::size_t) override { return add(json::array()); }
  bool end_array() override { return end_level(); }
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(json::binary_t& value) override { return add(json::binary(std::move(value))); }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw std::invalid_argument(
        fmt::format("{}: this is no JSON: {}", name_, config::printable(error.what())));
  }

 private:
  /// A level stays open until its end.
  bool add(json value) {
    const bool is_level = value.is_structured();
    if (is_level && open_.size() == kMostLevels)
      throw std::invalid_argument(
          fmt::format("{}: it has more than {} levels of objects and lists", name_, kMostLevels));
    const bool is_item = !open_.empty() && open_.back()->is_array();
    auto& place = open_.empty() ? document_ : is_item ? open_.back()->emplace_back() : *member_;
    place = std::move(value);
    if (is_level) open_.push_back(&place);
    return true;
  }
  bool end_level() {
    open_.pop_back();
    return true;
  }

  const std::string& name_;
  json& document_;
  std::vector<json*> open_;  // the levels that are open
  json* member_ = nullptr;   // of the innermost object: whose value comes next
};

}  // namespace

json parse_document(std::string_view text, const std::string& name, Comments comments) {
  if (text.find('\0') != text.npos)  // where the parser would end
    throw std::invalid_argument(fmt::format("{}: this is no JSON: it has a NUL byte", name));
  json document;
  DocumentMaker maker(name, document);
  json::sax_parse(text, &maker, json::input_format_t::json, /*strict=*/true,
                  comments == Comments::Allowed);
  if (!document.is_object())
    throw std::invalid_argument(fmt::format("{}: expected an object, {{...}}", name));
  return document;
}

}  // namespace troupe::train
