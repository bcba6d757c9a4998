#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::launch {

/// The rendezvous of Horovod's Gloo controller, which `horovodrun` serves otherwise: a key-value store
/// over HTTP (RendezvousStore), on the node of rank 0. `hvd.init()` finds it by
/// HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT, and nobody else asks for it.
///
///   PUT /scope/key     200; 413 or 507 where the value is above kMostValue or the store is full
///   GET /scope/key     200 with the value; 404 until it was put
///   DELETE /scope/key  200: RendezvousStore::finish()
///
/// Each connection has one request, which is to come within 10 s, and is closed after the answer:
/// Horovod's client reads to the end of the connection. There is no proof of who asks, as Horovod
/// has none. At most 64 connections are served at a time; others wait to be accepted.
///
/// One thread of its own, which ends with the object. The constructing thread only.
class RendezvousServer {
 public:
  static constexpr std::size_t kMostValue = 1 << 20;  ///< bytes
  static constexpr std::size_t kRoom = 64 << 20;      ///< bytes, of all scopes

  /// Listens at a port that Linux chooses, on this address alone. -> nullptr where that cannot be,
  /// as it is no IPv4 address in digits: Horovod knows no others.
  static std::unique_ptr<RendezvousServer> listen(const std::string& address);
  ~RendezvousServer();

  std::uint16_t port() const;

 private:
  struct Impl;
  explicit RendezvousServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::launch
