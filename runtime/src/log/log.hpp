#pragma once

#include <string>

/// What people running a cluster read: one line each. On stderr, or where the program has sent
/// spdlog's default logger, if that is not the one that spdlog starts with, whose lines go to
/// stdout. Any thread. In a file of its own, for spdlog takes longer to compile than most of what
/// logs.
namespace troupe::log {

void info(const std::string& line);
void warn(const std::string& line);
void error(const std::string& line);
/// From now on to stderr: stdout is the program's.
void to_stderr();

}  // namespace troupe::log
