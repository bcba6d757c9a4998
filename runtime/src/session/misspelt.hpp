#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::runtime {

/// The options that troupe::init takes from a program's arguments.
inline constexpr std::string_view kAddress = "--address";
inline constexpr std::string_view kTokenFile = "--token-file";
inline constexpr std::string_view kNoWorkerOutput = "--no-worker-output";

/// The option of troupe::init that `argument` may have been meant to be: it differs by at most two
/// letters, of what stands before a `=`. Nothing where it is one of them, or like none.
std::optional<std::string_view> meant_by(std::string_view argument);

/// One line for each such argument before a `--`. The argument may be the program's own: it is for
/// a warning alone.
std::vector<std::string> misspelt_arguments(int argc, const char* const* argv);

}  // namespace troupe::runtime
