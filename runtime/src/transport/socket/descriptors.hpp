#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>

#include "os/unique_fd.hpp"

/// File descriptors that go with bytes through a unix socket (SCM_RIGHTS, unix(7)). Without any,
/// every socket will do.
namespace troupe::transport {

inline constexpr std::size_t kMostDescriptors = 8;  ///< of one message

/// As sendmsg(), and never a signal. The descriptors arrive with the first byte; they stay the
/// caller's.
ssize_t send_pieces(int socket, std::span<iovec> pieces, std::span<const int> descriptors,
                    int flags);

/// As recvmsg() into one piece; what descriptors come along are appended, and close on exec.
/// EBADMSG, with none of them kept, where there would then be more than kMostDescriptors. Where
/// this process has no free descriptor for one of them, all that came with these bytes are lost: a
/// handler finds fewer than it awaits.
ssize_t receive_piece(int socket, std::span<char> space, std::vector<os::UniqueFd>& descriptors,
                      int flags);

}  // namespace troupe::transport
