#include <chrono>
#include <exception>
#include <utility>

#include <unistd.h>

#include "transport/handshake/handshake.hpp"
#include "transport/handshake/proof.hpp"
#include "transport/silence_timer.hpp"

namespace troupe::transport {
namespace {

constexpr std::chrono::milliseconds kLimit{1000};

/// One process as caller and server, on a loop of its own.
class Rehearsal {
 public:
  void run() {
    const auto listener =
        Listener::abstract_unix(loop_, name_, [this](Socket socket) { answer(std::move(socket)); });
    call();
    run_until(loop_, kLimit, [this] { return over_; });
  }

 private:
  void answer(Socket socket) {
    ServerOptions options;
    options.cluster = name_;
    options.key = [this](const Caller&) { return key_; };
    accept(
        std::move(socket), std::move(options),
        [this](ConnectionPtr connection, const Accepted&) {
          server_ = std::move(connection);
          server_->hand_over(
              {}, [this](wire::Message::Reader message) { over_ = read(message) != 0; },
              [](const std::string&) {});
        },
        [this](const Denied&) { over_ = true; });
  }

  void call() {
    ClientOptions options;
    options.self = {.role = wire::Role::PROCESS, .cluster = name_};
    options.key = key_;
    connect(
        loop_, {.host = {}, .port = 0, .unix_name = name_}, std::move(options),
        [this](ConnectionPtr connection, const Accepted&) {
          client_ = std::move(connection);
          Outgoing message;
          write(message.root().initProcessReady());
          client_->send(message);
        },
        [this](const Denied&) { over_ = true; });
  }

  void write(wire::ProcessReady::Builder ready) {
    ready.setPid(static_cast<std::uint32_t>(::getpid()));
    auto address = ready.initAddress();
    address.setHost(name_);
    address.setUnixName(name_);
    address.setMachine(name_);
  }

  std::size_t read(wire::Message::Reader message) {
    const auto address = message.getProcessReady().getAddress();
    return std::string(address.getHost()).size() + std::string(address.getUnixName()).size();
  }

  asio::io_context loop_{1};
  const Secret key_ = fresh_nonce();
  const std::string name_ = "troupe-" + random_name();
  ConnectionPtr server_, client_;
  bool over_ = false;
};

}  // namespace

void warm_up() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  try {
    Rehearsal().run();
  } catch (const std::exception&) {
    // What is missing here is missed, and told, by whoever needs it.
  }
}

}  // namespace troupe::transport
