#pragma once

#include <cstdint>
#include <string>

namespace troupe::node {

/// Two variables mark every process that a node starts and, by inheritance, every process that user code starts from
/// there, even one in a session of its own: whoever carries the mark of a node that is gone, or of a worker process
/// that has ended, can be found in /proc and ended. They steer nothing.
inline constexpr const char* kCookieVariable = "TROUPE_NODE_COOKIE";
inline constexpr const char* kProcessVariable = "TROUPE_PROCESS";

/// 16 hexadecimal digits, different for each life of a node.
std::string make_cookie();

/// "TROUPE_NODE_COOKIE=..." and "TROUPE_PROCESS=...", the latter always 20 digits long.
std::string cookie_entry(const std::string& cookie);
std::string process_entry(std::uint64_t process);

/// Marks this process as worker process `process`. Where the variable came with exec it is overwritten in place, so
/// that /proc/PID/environ shows it, which a fork of this process that does not exec inherits too. One thread only.
void mark_process(std::uint64_t process);

}  // namespace troupe::node
