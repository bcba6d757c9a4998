#include "collective/host/network/introducer.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <vector>

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
// For a peer to say who it is, once connected.
constexpr std::chrono::milliseconds kHelloTime{2000};

struct Hello {
  std::array<unsigned char, kNonceBytes> nonce;
};

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    throw Error(Failure{.kind = Failure::Kind::Unknown,
                        .message = "no random bytes from OpenSSL for connections between nodes"});
  }
  return bytes;
}

/// Proves knowledge of the key to the one who chose `theirs`: role and both nonces, so that no
/// answer can be reflected.
Digest proof(const std::string& key, std::string_view role, const Hello& mine,
             const Hello& theirs) {
  std::string text(role);
  text.append(reinterpret_cast<const char*>(mine.nonce.data()), kNonceBytes);
  text.append(reinterpret_cast<const char*>(theirs.nonce.data()), kNonceBytes);
  Digest digest{};
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &length);
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

}  // namespace

std::string gang_secret(Patience& patience, const std::string& name) {
  const auto key = name + "/secret";
  auto& gang = patience.gang();
  if (gang.rank() != 0) return patience.await(key, 0);
  auto secret = random_bytes(32);
  gang.rendezvous().set(key, secret);
  return secret;
}

Socket Introducer::reach(const std::string& key, int rank) {
  const auto place = parse(patience_.await(key, rank));
  for (;;) {
    for (const auto& address : place.addresses) {
      if (auto socket = attempt(address, place.port, key, rank)) return socket;
    }
    pause(rank);
  }
}

Socket Introducer::attempt(const std::string& address, int port, const std::string& key, int rank) {
  auto socket = connect_to(address, port);
  if (!socket) return {};
  const auto until = Clock::now() + kHelloTime;
  for (;;) {
    const int state = connected(socket, 50);
    if (state < 0) return {};
    if (state > 0) break;
    pause(rank);
    if (Clock::now() > until) return {};
  }
  return hold(socket, key + " from", key + " to") ? std::move(socket) : Socket{};
}

Socket Introducer::receive(const Socket& listener, const std::string& key, int rank) {
  for (;;) {
    pollfd wait{listener.fd(), POLLIN, 0};
    ::poll(&wait, 1, 50);
    if (auto socket = accept_from(listener); socket && hold(socket, key + " to", key + " from"))
      return socket;
    pause(rank);
  }
}

void Introducer::pause(int missing) {
  stop_();
  patience_.check([missing] { return std::vector{missing}; });
}

bool Introducer::hold(const Socket& socket, std::string_view my_role, std::string_view their_role) {
  const auto until = Clock::now() + kHelloTime;
  const auto swap = [&](std::span<const std::byte> out, std::span<std::byte> in) {
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
  };
  Hello mine{};
  const auto nonce = random_bytes(kNonceBytes);
  std::memcpy(mine.nonce.data(), nonce.data(), kNonceBytes);
  Hello theirs{};
  if (!swap(bytes_of(std::as_const(mine)), bytes_of(theirs))) return false;
  const auto sent = proof(secret_, my_role, mine, theirs);
  Digest got{};
  if (!swap(bytes_of(sent), bytes_of(got))) return false;
  const auto expected = proof(secret_, their_role, theirs, mine);
  return CRYPTO_memcmp(expected.data(), got.data(), got.size()) == 0;
}

}  // namespace troupe::train
