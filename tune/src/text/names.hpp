#pragma once

#include <string>
#include <string_view>

/// Names of metrics, and texts that have them, which may be any bytes, in files and messages that are
/// UTF-8.
namespace troupe::tune {

/// The name with "\ufffdXX" for each byte XX (two digits, upper case) that does not belong to a
/// character of UTF-8. Names that differ stay different: a "\ufffd" of the name itself is written
/// that way too, as three bytes, where two such digits follow it.
std::string name_in_utf8(std::string_view name);
/// The name of which name_in_utf8() made this text.
std::string name_from_utf8(std::string_view text);

}  // namespace troupe::tune
