#include "deepspeed/document.hpp"

#include <set>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "config/name.hpp"

namespace troupe::train::deepspeed {

using nlohmann::json;

json parse_document(std::string_view text, const std::string& name) {
  if (text.find('\0') != text.npos)  // where the parser would end
    throw std::invalid_argument(fmt::format("{}: this is no JSON: it has a NUL byte", name));
  std::vector<std::set<std::string>> keys;
  const auto look = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second)
        throw std::invalid_argument(fmt::format(
            "{}: the key '{}' stands twice in one object; keep one", name, config::printable(key)));
    }
    return true;
  };
  json document;
  try {
    document = json::parse(text, look, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const json::exception& error) {
    throw std::invalid_argument(
        fmt::format("{}: this is no JSON: {}", name, config::printable(error.what())));
  }
  if (!document.is_object())
    throw std::invalid_argument(fmt::format("{}: expected an object, {{...}}", name));
  return document;
}

}  // namespace troupe::train::deepspeed
