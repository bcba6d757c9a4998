#pragma once

#include <cstdint>

#include <sys/types.h>

namespace troupe::test {

/// The bytes that `sender` has sent by TCP over IPv4 to a program of this machine that listens at
/// `port`, and which lie in the sockets of that program, unread.
std::uint64_t unread_bytes(pid_t sender, int port);

}  // namespace troupe::test
