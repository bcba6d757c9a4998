#include "transport/socket/descriptors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace troupe::transport {
namespace {

using Control = std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))>;

}  // namespace

ssize_t send_pieces(int socket, std::span<iovec> pieces, std::span<const int> descriptors,
                    int flags) {
  if (descriptors.size() > kMostDescriptors) {
    errno = EINVAL;
    return -1;
  }
  alignas(cmsghdr) Control control{};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    auto* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

ssize_t receive_piece(int socket, std::span<char> space, std::vector<os::UniqueFd>& descriptors,
                      int flags) {
  alignas(cmsghdr) Control control;
  iovec piece{.iov_base = space.data(), .iov_len = space.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  std::vector<os::UniqueFd> arrived;
  for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at, sizeof descriptor);
      arrived.emplace_back(descriptor);
    }
  }
  const bool some_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  // The kernel cuts short what this process has no free descriptor for; that is no fault of the
  // peer, and the bytes are whole.
  if (some_lost && arrived.size() < kMostDescriptors) return got;
  std::ranges::move(arrived, std::back_inserter(descriptors));
  if (!some_lost && descriptors.size() <= kMostDescriptors) return got;
  descriptors.clear();
  errno = EBADMSG;
  return -1;
}

}  // namespace troupe::transport
