#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/trial.hpp>

/// Text for people on a terminal. Widths are counted in code points, one column each.
namespace troupe::tune {

/// Four significant digits, or all of them where that is no longer: "0.9813", "1e-05", "123456",
/// "nan".
std::string short_number(double number);
/// "lr=0.0278, batch=64": real numbers with short_number.
std::string short_text(const Scalar& value);
std::string short_text(const Configuration& configuration);
/// "epoch, loss"; "nothing" if there are none.
std::string names_of(const Metrics& metrics);
/// "0.8 s", "41.3 s", "12 min 5 s", "3 h 2 min".
std::string short_time(Seconds time);
/// The same, but below 100 s to the millisecond where it has any: "0.35 s", "25.0 s".
std::string exact_time(Seconds time);
/// "1 trial", "3 trials".
std::string counted(std::size_t count, std::string_view what);

std::size_t width_of(std::string_view utf8);
/// At most `width` columns, on one line: line ends and control characters become spaces, a cut is
/// marked with "...".
std::string clipped(std::string_view utf8, std::size_t width);
/// Filled with spaces, on the left if `right` aligned.
std::string padded(std::string_view utf8, std::size_t width, bool right);

enum class Colour : unsigned char { Plain, Bold, Dim, Red, Green, Yellow, Cyan };
/// The text in that colour as ANSI escapes; as it is if Plain or `enabled` is false.
std::string coloured(std::string_view text, Colour colour, bool enabled);

}  // namespace troupe::tune
