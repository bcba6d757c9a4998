#include "support/nccl_double/mesh.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>

#include <sys/socket.h>
#include <sys/un.h>

#include "support/nccl_double/nccl_double.hpp"

namespace nccl_double {
namespace {

constexpr milliseconds kBetweenTries{1};

/// The name of a rank's socket begins with a zero: it is in no folder.
socklen_t address_of(std::uint64_t name, char kind, int rank, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const int length =
      std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "nccl_double/%016llx/%c%d",
                    static_cast<unsigned long long>(name), kind, rank);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                static_cast<std::size_t>(length));
}

int make_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

bool wait_for_input(int fd, const Stop& stop) {
  pollfd both[] = {{fd, POLLIN, 0}, {stop.fd(), POLLIN, 0}};
  ::poll(both, 2, -1);
  return both[1].revents == 0;
}

/// -> the connection, or -1 once stopped.
int connect_to(std::uint64_t name, char kind, int rank, const Stop& stop) {
  sockaddr_un address;
  const auto length = address_of(name, kind, rank, address);
  do {
    const int fd = make_socket();
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0) return fd;
    ::close(fd);
  } while (!stop.wait(kBetweenTries));
  return -1;
}

/// One way of one connection: what is under way there, each behind a head.
struct Head {
  std::uint64_t tag;
  std::uint64_t bytes;
};
struct Lane {
  int fd = -1;
  bool sends = false;
  std::deque<Transfer> waiting;
  Head head{};
  std::size_t done = 0;  // of the first that waits, with its head
  bool is_lost = false;

  bool is_open() const { return !waiting.empty() && !is_lost; }
  /// As far as it goes without waiting. -> whether the other rank agrees.
  bool advance();

 private:
  std::optional<std::size_t> move(void* data, std::size_t bytes);
};

std::optional<std::size_t> Lane::move(void* data, std::size_t bytes) {
  const auto moved = sends ? ::send(fd, data, bytes, MSG_NOSIGNAL) : ::recv(fd, data, bytes, 0);
  if (moved > 0) return static_cast<std::size_t>(moved);
  if (moved == 0 || (errno != EAGAIN && errno != EINTR)) is_lost = true;
  return std::nullopt;
}

bool Lane::advance() {
  while (is_open()) {
    const auto& first = waiting.front();
    if (sends) head = {first.tag, first.bytes};
    const bool in_head = done < sizeof head;
    const auto in_data = in_head ? 0 : done - sizeof head;
    if (in_head || in_data < first.bytes) {
      const auto moved = in_head
                             ? move(reinterpret_cast<std::byte*>(&head) + done, sizeof head - done)
                             : move(first.data + in_data, first.bytes - in_data);
      if (!moved) return true;
      done += *moved;
    }
    if (done < sizeof head) continue;
    if (head.tag != first.tag || head.bytes != first.bytes) return false;
    if (done < sizeof head + first.bytes) continue;
    waiting.pop_front();
    done = 0;
  }
  return true;
}

/// A rank's messages to itself.
bool copy_own(std::vector<Transfer> own) {
  const auto middle =
      std::stable_partition(own.begin(), own.end(), [](const auto& each) { return each.sends; });
  if (middle - own.begin() != own.end() - middle) return false;
  for (auto sent = own.begin(), received = middle; sent != middle; ++sent, ++received) {
    if (sent->bytes != received->bytes || sent->tag != received->tag) return false;
    if (sent->bytes > 0) std::memmove(received->data, sent->data, sent->bytes);
  }
  return true;
}

}  // namespace

End Mesh::connect(std::uint64_t name, char kind, int rank, int size, const Stop& stop) {
  rank_ = rank;
  fds_.assign(static_cast<std::size_t>(size), -1);
  sockaddr_un address;
  const auto length = address_of(name, kind, rank, address);
  const int listener = make_socket();
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener, size) != 0) {
    ::close(listener);
    return End::Differ;  // two say that they are this rank
  }
  for (int peer = 0; peer < rank; ++peer) {
    const int fd = connect_to(name, kind, peer, stop);
    fds_[static_cast<std::size_t>(peer)] = fd;
    if (fd < 0) break;
    ::send(fd, &rank, sizeof rank, MSG_NOSIGNAL);
  }
  for (int left = size - 1 - rank; left > 0 && wait_for_input(listener, stop);) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int peer = 0;
    if (fd < 0) continue;
    if (!wait_for_input(fd, stop) || ::recv(fd, &peer, sizeof peer, 0) != sizeof peer) {
      ::close(fd);
      continue;
    }
    fds_[static_cast<std::size_t>(peer)] = fd;
    --left;
  }
  ::close(listener);
  return stop.is_set() ? End::Stopped : End::Complete;
}

End Mesh::exchange(const std::vector<Transfer>& transfers, const Stop& stop) {
  std::vector<Lane> lanes(2 * fds_.size());
  std::vector<Transfer> own;
  for (const auto& each : transfers) {
    if (each.peer == rank_) {
      own.push_back(each);
      continue;
    }
    auto& lane = lanes[2 * static_cast<std::size_t>(each.peer) + (each.sends ? 1 : 0)];
    lane.fd = fds_[static_cast<std::size_t>(each.peer)];
    lane.sends = each.sends;
    lane.waiting.push_back(each);
  }
  for (;;) {
    std::vector<pollfd> waits{{stop.fd(), POLLIN, 0}};
    bool any_lost = false;
    for (auto& lane : lanes) {
      if (!lane.advance()) return End::Differ;
      if (lane.is_open()) waits.push_back({lane.fd, short(lane.sends ? POLLOUT : POLLIN), 0});
      any_lost = any_lost || lane.is_lost;
    }
    if (any_lost && behaviour().notices_lost_ranks) return End::Lost;
    if (waits.size() == 1 && !any_lost) break;
    ::poll(waits.data(), waits.size(), -1);
    if (waits.front().revents != 0) return End::Stopped;
  }
  return copy_own(own) ? End::Complete : End::Differ;
}

void Mesh::close() {
  for (const int fd : fds_) {
    if (fd >= 0) ::close(fd);
  }
  fds_.clear();
}

}  // namespace nccl_double
