#include "transport/handshake/handshake.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "transport/frame.hpp"
#include "transport/handshake/proof.hpp"
#include "transport/handshake/version.hpp"
#include "transport/silence_timer.hpp"
#include "transport/socket/refusal.hpp"

namespace troupe::transport {
namespace {

/// One handshake as the server sees it. Held by its deadline until it is over.
///
///     [hello] --Hello--> [proof] --Proof--> accepted
///        `-------- anything else ------'--> denied
class Server : public Handshake, public std::enable_shared_from_this<Server> {
 public:
  Server(ConnectionPtr connection, ServerOptions options,
         std::function<void(ConnectionPtr, Accepted)> accepted, std::function<void(Denied)> denied)
      : deadline_(connection->executor()),
        connection_(std::move(connection)),
        options_(std::move(options)),
        accepted_(std::move(accepted)),
        denied_(std::move(denied)) {}

  void start() {
    deadline_.start(options_.timeout, [self = shared_from_this()] {
      if (!self->connection_) return;
      self->deny(fmt::format("the caller {} did not complete the handshake within {} ms",
                             self->connection_->peer(), self->options_.timeout.count()));
    });
    connection_->start(
        [weak = weak_from_this()](wire::Message::Reader message) {
          if (const auto self = weak.lock()) self->receive(message);
        },
        [weak = weak_from_this()](const std::string& why) {
          if (const auto self = weak.lock())
            self->deny(self->describe_end(why), !why.starts_with(kNotTroupe));
        });
  }

  void give_up(std::string why) override { deny(std::move(why)); }

 private:
  void receive(wire::Message::Reader message) try {
    if (message.isHello() && !hello_seen_) return on_hello(message.getHello());
    if (message.isProof() && hello_seen_) return on_proof(message.getProof());
    if (message.isRefusal() && hello_seen_) {
      return deny(
          describe(read(message.getRefusal(), Side::Caller), Side::Server, connection_->peer()));
    }
    deny(fmt::format("the caller {} sent something else than its part of the handshake",
                     connection_->peer()));
  } catch (const Error& error) {
    deny(error.what());
  }

  void on_hello(wire::Hello::Reader hello) {
    hello_seen_ = true;
    auto& caller = seen_.caller;
    caller = {.role = hello.getRole(),
              .cluster = hello.getCluster(),
              .job = runtime::JobId(hello.getJob()),
              .process = runtime::ProcessId(hello.getProcess()),
              .subject = runtime::ProcessId(hello.getSubject())};
    seen_.cluster = options_.cluster;
    seen_.caller_min = hello.getProtocolMin();
    seen_.caller_max = hello.getProtocolMax();
    seen_.server_min = options_.protocol_min;
    seen_.server_max = options_.protocol_max;
    seen_.protocol = std::min(seen_.caller_max, seen_.server_max);
    if (seen_.protocol < std::max(seen_.caller_min, seen_.server_min)) {
      return refuse(protocol_mismatch(seen_, kVersion, fit(hello.getVersion())));
    }
    if (!caller.cluster.empty() && caller.cluster != options_.cluster)
      return refuse(cluster_mismatch(seen_));
    const auto nonce = bytes_of(hello.getNonce());
    if (nonce.size() != seen_.caller_nonce.size())
      return refuse({.text = "the nonce is not of 32 bytes"});
    std::ranges::copy(nonce, seen_.caller_nonce.begin());
    if (auto why = options_.refuse ? options_.refuse(caller) : ""; !why.empty())
      return refuse({.text = std::move(why)});
    challenge();
  }

  void challenge() {
    key_ = options_.key(seen_.caller);
    seen_.server_nonce = fresh_nonce();
    const auto proof = proof_of(Side::Server, key_, seen_);
    Outgoing message;
    auto out = message.root().initChallenge();
    out.setProtocol(seen_.protocol);
    out.setProtocolMin(seen_.server_min);
    out.setProtocolMax(seen_.server_max);
    out.setCluster(seen_.cluster);
    out.setNonce({seen_.server_nonce.data(), seen_.server_nonce.size()});
    out.setProof({proof.data(), proof.size()});
    out.setVersion(std::string(kVersion));
    out.setKeyId(key_id(key_));
    connection_->send(std::move(message));
  }

  void on_proof(wire::Proof::Reader proof) {
    if (!equal(proof_of(Side::Caller, key_, seen_), bytes_of(proof.getProof()))) {
      return refuse(key_mismatch(seen_.caller.role, key_id(key_), "unknown"));
    }
    Outgoing message;
    message.root().initWelcome();
    connection_->send(std::move(message));
    connection_->hand_over(Limits{}, nullptr, nullptr);
    deadline_.cancel();
    const auto accepted = std::exchange(accepted_, nullptr);
    accepted(std::exchange(connection_, nullptr),
             {.caller = seen_.caller, .cluster = seen_.cluster, .protocol = seen_.protocol});
  }

  void refuse(const Mismatch& mismatch) {
    Outgoing message;
    write(message.root().initRefusal(), mismatch, Side::Server);
    connection_->send(std::move(message));
    const auto connection = connection_;
    connection->finish();
    const auto role = fmt::format("{} ({})", connection->peer(), name_of(seen_.caller.role));
    deny(describe(mismatch, Side::Server, role));
  }

  std::string describe_end(const std::string& why) const {
    const auto& peer = connection_->peer();
    if (why.starts_with(kNotTroupe))
      return fmt::format("{} does not speak Troupe: {}", peer, why.substr(kNotTroupe.size()));
    return fmt::format("the handshake with {} failed: {}", peer, why);
  }

  void deny(std::string why, bool left = false) {
    if (!connection_) return;
    const auto connection = std::exchange(connection_, nullptr);
    if (connection->is_open()) connection->close();
    deadline_.cancel();
    const auto denied = std::exchange(denied_, nullptr);
    denied({.why = std::move(why), .left = left});
  }

  SilenceTimer deadline_;
  ConnectionPtr connection_;  // nullptr once it is over
  ServerOptions options_;
  std::function<void(ConnectionPtr, Accepted)> accepted_;
  std::function<void(Denied)> denied_;
  bool hello_seen_ = false;
  Transcript seen_;
  Secret key_{};
};

}  // namespace

std::weak_ptr<Handshake> accept(Socket socket, ServerOptions options,
                                std::function<void(ConnectionPtr, Accepted)> accepted,
                                std::function<void(Denied)> denied) {
  return accept(Connection::make(std::move(socket), kBeforeHandshake), std::move(options),
                std::move(accepted), std::move(denied));
}

std::weak_ptr<Handshake> accept(ConnectionPtr connection, ServerOptions options,
                                std::function<void(ConnectionPtr, Accepted)> accepted,
                                std::function<void(Denied)> denied) {
  auto server = std::make_shared<Server>(std::move(connection), std::move(options),
                                         std::move(accepted), std::move(denied));
  server->start();
  return server;
}

}  // namespace troupe::transport
