#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace troupe::config {

/// The one way from JSON to text here. Texts of users, peers and the system are in it: nlohmann's
/// default throws where one is not UTF-8, which would end a head with every job; here U+FFFD stands
/// for the bytes that are not.
inline std::string to_text(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace troupe::config
