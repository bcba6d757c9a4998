#include "collective/ring_connect.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace troupe::train {
namespace {

using Clock = std::chrono::steady_clock;
using Digest = std::array<unsigned char, 32>;
constexpr std::size_t kNonceBytes = 32;
constexpr std::chrono::milliseconds kHelloTime{2000};  // for a peer to say who it is, once connected

struct Hello {
  std::array<unsigned char, kNonceBytes> nonce;
};

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    throw Error(
        Failure{.kind = Failure::Kind::Unknown, .message = "no random bytes from OpenSSL for the ring between nodes"});
  }
  return bytes;
}

/// Proves knowledge of the key to the one who chose `theirs`: role and both nonces, so that no answer can be reflected.
Digest proof(const std::string& key, std::string_view role, const Hello& mine, const Hello& theirs) {
  std::string text(role);
  text.append(reinterpret_cast<const char*>(mine.nonce.data()), kNonceBytes);
  text.append(reinterpret_cast<const char*>(theirs.nonce.data()), kNonceBytes);
  Digest digest{};
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), digest.data(), &length);
  return digest;
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// Both sides run this on a new connection. -> whether the other one is who it should be.
class Introduction {
 public:
  Introduction(Patience& patience, const std::string& key, const std::function<void()>& stop)
      : patience_(patience), key_(key), stop_(stop) {}

  bool hold(const Socket& socket, std::string_view my_role, std::string_view their_role) {
    const auto until = Clock::now() + kHelloTime;
    Hello mine{};
    const auto nonce = random_bytes(kNonceBytes);
    std::memcpy(mine.nonce.data(), nonce.data(), kNonceBytes);
    Hello theirs{};
    if (!swap(socket, bytes_of(std::as_const(mine)), bytes_of(theirs), until)) return false;
    const auto sent = proof(key_, my_role, mine, theirs);
    Digest got{};
    if (!swap(socket, bytes_of(sent), bytes_of(got), until)) return false;
    const auto expected = proof(key_, their_role, theirs, mine);
    return CRYPTO_memcmp(expected.data(), got.data(), got.size()) == 0;
  }

 private:
  bool swap(const Socket& socket, std::span<const std::byte> out, std::span<std::byte> in, Clock::time_point until) {
    try {
      while (!transfer_slice({socket, -1, socket, -1}, out, in, patience_)) {
        stop_();
        if (patience_.expired() || Clock::now() > until) return false;
      }
      return true;
    } catch (const GangBroken&) {
      if (patience_.gang_is_broken()) throw;
      return false;  // a stranger, or the wrong address: hung up
    }
  }

  Patience& patience_;
  const std::string& key_;
  const std::function<void()>& stop_;
};

struct Place {
  int port = 0;
  std::vector<std::string> addresses;
};

Place parse(const std::string& text) {
  Place place;
  std::istringstream in(text);
  in >> place.port;
  for (std::string address; in >> address;) place.addresses.push_back(address);
  return place;
}

std::string published(const Socket& listener, const std::string& address) {
  auto text = fmt::format("{}", port_of(listener));
  if (!address.empty()) return text + " " + address;
  for (const auto& own : own_addresses()) text += " " + own;
  return text;
}

/// Waits a slice for the connection to be made. -> 1: made, 0: not yet, -1: failed.
int connected(const Socket& socket, int slice_ms) {
  pollfd wait{socket.fd(), POLLOUT, 0};
  if (::poll(&wait, 1, slice_ms) <= 0) return 0;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? 1 : -1;
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int on = 1;
  if (socket) ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

/// Makes the two connections, in turns: an attempt to reach the next node, then a look at who wants to come in. A node
/// waits for no other one's introduction while its own neighbour waits for its, because both are awaited with a limit and
/// the one that connects is always the first to send.
class Meeting {
 public:
  Meeting(Patience& patience, const std::string& key, const std::string& secret, Neighbours neighbours,
          const std::function<void()>& stop)
      : patience_(patience), key_(key), neighbours_(neighbours), stop_(stop), introduction_(patience, secret, stop) {}

  /// Even positions connect before they accept and odd ones after, so that of two neighbours one is always listening;
  /// an odd ring has one pair of connecting neighbours, whose chain is resolved by the node after it.
  RingEnds run(const Socket& listener, bool connect_first) {
    RingEnds ends;
    if (connect_first) ends.next = reach_next();
    ends.previous = receive_previous(listener);
    if (!connect_first) ends.next = reach_next();
    return ends;
  }

 private:
  Socket reach_next() {
    const auto place = parse(
        patience_.gang().rendezvous().get(fmt::format("{}/{}", key_, neighbours_.next_rank), patience_.timeout()));
    for (;;) {
      for (const auto& address : place.addresses) {
        if (auto socket = attempt(address, place.port)) return socket;
      }
      pause(neighbours_.next_rank);
    }
  }

  Socket attempt(const std::string& address, int port) {
    auto socket = connect_to(address, port);
    if (!socket) return {};
    const auto until = Clock::now() + kHelloTime;
    for (;;) {
      const int state = connected(socket, 50);
      if (state < 0) return {};
      if (state > 0) break;
      stop_();
      if (patience_.expired()) patience_.throw_timed_out({neighbours_.next_rank});
      if (Clock::now() > until) return {};
    }
    return introduction_.hold(socket, "from", "to") ? std::move(socket) : Socket{};
  }

  Socket receive_previous(const Socket& listener) {
    for (;;) {
      pollfd wait{listener.fd(), POLLIN, 0};
      ::poll(&wait, 1, 50);
      if (auto socket = accept_from(listener); socket && introduction_.hold(socket, "to", "from")) return socket;
      pause(neighbours_.previous_rank);
    }
  }

  void pause(int missing) {
    stop_();
    if (patience_.expired()) patience_.throw_timed_out({missing});
  }

  Patience& patience_;
  const std::string& key_;
  Neighbours neighbours_;
  const std::function<void()>& stop_;
  Introduction introduction_;
};

}  // namespace

RingEnds connect_ring(Patience& patience, const std::string& key, const std::string& address, Neighbours neighbours,
                      const std::function<void()>& stop) {
  auto& gang = patience.gang();
  auto& rendezvous = gang.rendezvous();
  if (gang.node_rank() == 0) rendezvous.set(key + "/secret", random_bytes(32));
  const auto listener = listen_on(address);
  rendezvous.set(fmt::format("{}/{}", key, gang.rank()), published(listener, address));
  const auto secret = rendezvous.get(key + "/secret", patience.timeout());
  Meeting meeting(patience, key, secret, neighbours, stop);
  return meeting.run(listener, gang.node_rank() % 2 == 0);
}

}  // namespace troupe::train
