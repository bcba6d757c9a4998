#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

namespace troupe::test {

/// Stands between those who connect to it and a server on loopback, and passes bytes on. Resets
/// connections, as a middlebox that forgets them, where it is told to. Has a thread of its own.
class CutProxy {
 public:
  /// `server`: "127.0.0.1:PORT".
  explicit CutProxy(const std::string& server);
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;
  CutProxy& operator=(const CutProxy&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::uint16_t port() const { return port_; }
  /// Resets what is connected now at both ends. -> how many connections.
  int cut();
  /// As long as it is: resets who connects, and what is connected.
  void block(bool blocked);

 private:
  struct Descriptor {
    int number = -1;
    explicit Descriptor(int fd) : number(fd) {}
    Descriptor(Descriptor&& other) noexcept : number(std::exchange(other.number, -1)) {}
    ~Descriptor() {
      if (number >= 0) ::close(number);
    }
  };
  struct Pair {
    Descriptor client, server;
  };
  void serve();
  void accept();
  static void reset_when_closed(const Descriptor& socket);
  bool pass(const Pair& pair, bool forth);

  std::uint16_t server_port_ = 0, port_ = 0;
  Descriptor listening_;
  std::mutex mutex_;  // guards the two below
  std::list<Pair> pairs_;
  bool is_blocked_ = false;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace troupe::test
