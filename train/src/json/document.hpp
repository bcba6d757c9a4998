#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe::train {

enum class Comments { Allowed, Refused };

/// The object that a document is. `name`: what the document is called in errors. Throws
/// std::invalid_argument for what is no JSON or no object, for more than 64 levels of objects and
/// lists, and for a key that stands twice in an object, because the last one would win in silence.
/// Pure; any thread. Its time grows with the text.
nlohmann::json parse_document(std::string_view text, const std::string& name, Comments comments);

}  // namespace troupe::train
