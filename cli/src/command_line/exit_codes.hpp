#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

struct ExitCode {
  std::string code;
  std::string means;
};
/// Those of a command, "job submit"; of the program as a whole where `command` is empty.
std::vector<ExitCode> exit_codes(std::string_view command);

inline constexpr std::string_view kExitTitle = "Exit status:";
/// What stands below a command's options: `notes`, if there are any, then its exit codes.
std::string footer(const std::string& notes, std::string_view command);

}  // namespace troupe::cli
