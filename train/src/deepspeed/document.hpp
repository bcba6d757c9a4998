#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe::train::deepspeed {

/// The object that a configuration is: JSON, with comments. `name`: the name of the configuration
/// in errors. Throws std::invalid_argument for what is no JSON or no object, and for a key that
/// stands twice in an object, because the last one would win in silence.
nlohmann::json parse_document(std::string_view text, const std::string& name);

}  // namespace troupe::train::deepspeed
