#include "node/spawn/zygote_wire.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "transport/socket/descriptors.hpp"

namespace troupe::node {
namespace {

struct Header {
  std::uint32_t kind;
  std::int32_t pid;
  std::uint64_t process;
};
constexpr auto kLastKind = static_cast<std::uint32_t>(ZygotePacket::Kind::Failed);

ssize_t uninterrupted(const auto& call) {
  for (;;) {
    const ssize_t moved = call();
    if (moved >= 0 || errno != EINTR) return moved;
  }
}

}  // namespace

std::string encode(const ZygotePacket& packet) {
  const Header header{static_cast<std::uint32_t>(packet.kind), packet.pid, packet.process.value()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  for (const auto& text : packet.texts) bytes.append(text.c_str()).push_back('\0');
  return bytes;
}

std::optional<ZygotePacket> decode(const char* data, std::size_t size) {
  Header header;
  if (size < sizeof header) return std::nullopt;
  std::memcpy(&header, data, sizeof header);
  if (header.kind > kLastKind) return std::nullopt;
  if (size > sizeof header && data[size - 1] != '\0') return std::nullopt;

  ZygotePacket packet{
      static_cast<ZygotePacket::Kind>(header.kind), header.pid, ProcessId(header.process), {}};
  for (const char* at = data + sizeof header; at < data + size;
       at += packet.texts.back().size() + 1) {
    packet.texts.emplace_back(at);
  }
  return packet;
}

int send_packet(int socket, const std::string& bytes, int fd, int flags) {
  if (bytes.size() > kZygotePacketBytes) return EMSGSIZE;
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  const auto sent = uninterrupted([&] {
    return transport::send_pieces(socket, {&part, 1}, {&fd, fd < 0 ? 0U : 1U}, flags);
  });
  return sent < 0 ? errno : 0;
}

Received receive_packet(int socket, int flags) {
  std::vector<os::UniqueFd> descriptors;
  std::vector<char> bytes;
  // Room for the packet that comes, and not for the largest one: behind that on the stack a zygote
  // would write to a page of its own after every fork, and each child would keep the one before.
  auto got =
      uninterrupted([&] { return ::recv(socket, nullptr, 0, flags | MSG_PEEK | MSG_TRUNC); });
  if (got > 0) {
    bytes.resize(std::min(static_cast<std::size_t>(got), kZygotePacketBytes));
    got =
        uninterrupted([&] { return transport::receive_piece(socket, bytes, descriptors, flags); });
  }

  Received received;
  if (got < 0) {
    // A peer that died with packets of ours unread resets the socket; for us it is gone like any
    // other.
    received.error = errno == ECONNRESET ? 0 : errno;
    return received;
  }
  if (!descriptors.empty()) received.fd = std::move(descriptors.back());
  if (got == 0) return received;
  received.packet = decode(bytes.data(), static_cast<std::size_t>(got));
  if (!received.packet) received.error = EBADMSG;
  return received;
}

}  // namespace troupe::node
