#pragma once

#include <string_view>

/// How the error of a trial begins that `troupe tune` runs as a program. The search knows by these
/// words which trials failed alike, whatever their programs printed.
namespace troupe::tune::detail {

inline constexpr std::string_view kOfProgram = "the program ";  // as all of these do
inline constexpr std::string_view kEndedWithCode = "the program ended with exit code ";  // "3"
inline constexpr std::string_view kEndedBySignal =
    "the program was ended by signal ";  // "6 (TEXT)"
inline constexpr std::string_view kEndedUnreported = "the program ended without a report of ";
/// Before the path of its log, which no text but the place of the error follows.
inline constexpr std::string_view kOutputIsIn = "its output is in ";

}  // namespace troupe::tune::detail
