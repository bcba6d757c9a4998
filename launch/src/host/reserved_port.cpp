#include "host/reserved_port.hpp"

#include <cstring>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

constexpr std::uint16_t kLowest = 15'000;
constexpr int kTries = 2'000;

/// The first port that Linux may take by itself.
std::uint16_t end_of_range() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first > kLowest + 1'000 && first < 65'536 ? static_cast<std::uint16_t>(first) : 32'768;
}

/// Whether somebody listens there, on any address.
bool is_free(std::uint16_t number) {
  const os::UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(number);
  if (socket) {
    const int no = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
  }
  const os::UniqueFd older(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(number);
  return older && ::bind(older.get(), reinterpret_cast<sockaddr*>(&any4), sizeof any4) == 0;
}

}  // namespace

ReservedPort::ReservedPort() {
  std::random_device random;
  std::uniform_int_distribution<int> numbers(kLowest, end_of_range() - 1);
  for (int tried = 0; tried < kTries; ++tried) {
    if (claim(static_cast<std::uint16_t>(numbers(random)))) return;
  }
  refuse(fmt::format("no port from {} on is free on this machine", kLowest));
}

bool ReservedPort::claim(std::uint16_t number) {
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const auto text = fmt::format("troupe-port-{}", number);
  std::memcpy(name.sun_path + 1, text.data(), text.size());  // after a zero: in no folder
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) return false;
  if (!is_free(number)) return false;
  claim_ = std::move(socket);
  number_ = number;
  return true;
}

}  // namespace troupe::launch
