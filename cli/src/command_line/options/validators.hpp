#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/name.hpp"
#include "options.hpp"

/// What values of options must be, in words for people.
namespace troupe::cli {

/// CLI11's own would print the largest number there is.
inline CLI::Validator above_zero() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || !(value > 0) || !std::isfinite(value))
          return "'" + text + "' is not a number above 0";
        return why_nothing(text, value);
      },
      "NUMBER > 0");
}

/// CLI11's own takes nan, which lies in no range.
inline CLI::Validator from_to(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return {};
        return fmt::format("'{}' is not a number from {} to {}", text, least, most);
      },
      fmt::format("FLOAT in [{:g} - {:g}]", least, most));
}

/// An empty value is a variable that is not set in somebody's script, and not "as if it were not
/// said".
inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return text.empty() ? "was given an empty value" : "";
      },
      "");
}

inline CLI::Validator a_name() {
  return CLI::Validator([](std::string& text) { return config::why_no_name(text); }, "");
}

}  // namespace troupe::cli
