#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ids/ids.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {

using runtime::ProcessId;

/// What a node and a zygote say to each other: one packet of a SOCK_SEQPACKET socket each. No Asio
/// and no Cap'n Proto on purpose: the zygote must stay a process with one thread that has touched
/// nothing.
struct ZygotePacket {
  enum class Kind : std::uint32_t {
    Ready,  ///< zygote: the program has reached troupe::init; pid is the zygote's
    /// Node: make `process`; pid is the node's; a descriptor comes along: the worker's end of its
    /// link.
    Fork,
    Forked,      ///< zygote: `process` runs as `pid`
    CannotFork,  ///< zygote: copies of it could not go on; texts[0]: why_not_to_fork()
    Failed,      ///< zygote: the fork of `process` failed; texts[0] says why
  };
  Kind kind = Kind::Ready;
  std::int32_t pid = 0;
  ProcessId process{};
  /// Of a Fork: file for stdout and stderr (may be empty), then "NAME=value" for the environment of
  /// the worker process.
  std::vector<std::string> texts;
};

/// A packet never has more bytes than this; a longer one is not sent.
inline constexpr std::size_t kZygotePacketBytes = std::size_t{64} << 10;

std::string encode(const ZygotePacket& packet);
/// nullopt where the bytes are no packet: a zygote has run user code, so its bytes are checked.
std::optional<ZygotePacket> decode(const char* data, std::size_t size);

/// Sends one packet, with `fd` if it is not -1. -> 0 or an errno (EAGAIN where the socket does not
/// block).
int send_packet(int socket, const std::string& bytes, int fd, int flags);

struct Received {
  int error = 0;  ///< an errno; 0 with an empty packet: the other end is gone
  std::optional<ZygotePacket> packet;
  os::UniqueFd fd;
};
Received receive_packet(int socket, int flags);

}  // namespace troupe::node
