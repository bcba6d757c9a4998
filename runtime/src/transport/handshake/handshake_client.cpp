#include "transport/handshake/handshake.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "transport/frame.hpp"
#include "transport/handshake/proof.hpp"
#include "transport/handshake/version.hpp"
#include "transport/silence_timer.hpp"
#include "transport/socket/dial.hpp"
#include "transport/socket/refusal.hpp"

namespace troupe::transport {
namespace {

/// A driver or a worker process is meant, not the head.
bool calls_a_process(const Caller& self) {
  return self.role == wire::Role::PROCESS || self.subject;
}

std::string nobody_there(const ClientOptions& options) {
  if (!options.nobody_there.empty()) return options.nobody_there;
  return calls_a_process(options.self) ? "the process that listened there has ended"
                                       : "is the head running? start it with `troupe head`";
}

/// One handshake as the client sees it, from the name to the welcome. Held by its deadline until it
/// is over.
///
///     [dialing] --> [hello sent] --Challenge, its proof is right--> [proof sent] --Welcome, if awaited--> accepted
///         `-------------`------------- anything else ------------------'--> denied
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(asio::io_context& loop, Endpoint to, ClientOptions options,
         std::function<void(ConnectionPtr, Accepted)> accepted, std::function<void(Denied)> denied)
      : loop_(loop),
        to_(std::move(to)),
        deadline_(loop.get_executor()),
        options_(std::move(options)),
        accepted_(std::move(accepted)),
        denied_(std::move(denied)) {}

  void start() {
    deadline_.start(options_.timeout, [self = shared_from_this()] {
      if (!self->denied_) return;
      const bool connected = self->connection_ != nullptr;
      self->deny_as(
          {.why = self->describe_timeout(), .may_be_busy = connected, .unreachable = !connected});
    });
    dial_ = std::make_shared<Dial>(
        loop_, to_, nobody_there(options_),
        [weak = weak_from_this()](Socket socket) {
          if (const auto self = weak.lock()) self->hello(std::move(socket));
        },
        [weak = weak_from_this()](DialFailure failed) {
          if (const auto self = weak.lock()) {
            self->deny_as({.why = std::move(failed.why),
                           .unreachable = failed.unreachable,
                           .nobody_listens = failed.nobody_listens});
          }
        });
    dial_->start();
  }

 private:
  void hello(Socket socket) try {
    connection_ = Connection::make(std::move(socket), kBeforeHandshake);
    connection_->start(
        [weak = weak_from_this()](wire::Message::Reader message) {
          if (const auto self = weak.lock()) self->receive(message);
        },
        [weak = weak_from_this()](const std::string& why) {
          // After its challenge a server that refuses says why: one that only hangs up was too late
          // itself.
          if (const auto self = weak.lock()) self->deny(self->describe_end(why), self->challenged_);
        });
    seen_.caller = options_.self;
    seen_.caller_min = options_.protocol_min;
    seen_.caller_max = options_.protocol_max;
    seen_.caller_nonce = fresh_nonce();
    Outgoing message;
    auto out = message.root().initHello();
    out.setProtocolMin(seen_.caller_min);
    out.setProtocolMax(seen_.caller_max);
    out.setRole(seen_.caller.role);
    out.setCluster(seen_.caller.cluster);
    out.setJob(seen_.caller.job.value());
    out.setProcess(seen_.caller.process.value());
    out.setSubject(seen_.caller.subject.value());
    out.setNonce({seen_.caller_nonce.data(), seen_.caller_nonce.size()});
    out.setVersion(std::string(kVersion));
    connection_->send(std::move(message));
  } catch (const Error& error) {
    deny(error.what());
  }

  void receive(wire::Message::Reader message) try {
    if (message.isChallenge() && !challenged_) return on_challenge(message.getChallenge());
    if (message.isWelcome() && challenged_) return complete();
    if (message.isRefusal()) {
      return deny_as(
          {.why = describe(read(message.getRefusal(), Side::Server), Side::Caller, name_of(to_)),
           .refused = true});
    }
    deny(fmt::format("{} sent something else than its part of the handshake", name_of(to_)));
  } catch (const Error& error) {
    deny(error.what());
  }

  void on_challenge(wire::Challenge::Reader challenge) {
    challenged_ = true;
    seen_.cluster = challenge.getCluster();
    seen_.protocol = challenge.getProtocol();
    seen_.server_min = challenge.getProtocolMin();
    seen_.server_max = challenge.getProtocolMax();
    if (const auto mismatch = find_mismatch(challenge)) return refuse(*mismatch);

    const auto proof = proof_of(Side::Caller, options_.key, seen_);
    Outgoing message;
    message.root().initProof().setProof({proof.data(), proof.size()});
    connection_->send(std::move(message));
    if (!options_.awaits_welcome) complete();
  }

  /// The server proves itself first: one without the key learns nothing that it could use.
  std::optional<Mismatch> find_mismatch(wire::Challenge::Reader challenge) {
    if (seen_.protocol < seen_.caller_min || seen_.protocol > seen_.caller_max) {
      return protocol_mismatch(seen_, fit(challenge.getVersion()), kVersion);
    }
    if (!seen_.caller.cluster.empty() && seen_.cluster != seen_.caller.cluster)
      return cluster_mismatch(seen_);
    const auto nonce = bytes_of(challenge.getNonce());
    if (nonce.size() != seen_.server_nonce.size())
      return Mismatch{.text = "the nonce is not of 32 bytes"};
    std::ranges::copy(nonce, seen_.server_nonce.begin());
    if (!equal(proof_of(Side::Server, options_.key, seen_), bytes_of(challenge.getProof()))) {
      return key_mismatch(seen_.caller.role, fit(challenge.getKeyId()), key_id(options_.key));
    }
    return std::nullopt;
  }

  void complete() {
    connection_->hand_over(Limits{}, nullptr, nullptr);
    deadline_.cancel();
    denied_ = nullptr;
    const auto accepted = std::exchange(accepted_, nullptr);
    accepted(std::exchange(connection_, nullptr),
             {.caller = options_.self, .cluster = seen_.cluster, .protocol = seen_.protocol});
  }

  void refuse(const Mismatch& mismatch) {
    Outgoing message;
    write(message.root().initRefusal(), mismatch, Side::Caller);
    connection_->send(std::move(message));
    connection_->finish();
    auto why = describe(mismatch, Side::Caller, name_of(to_));
    if (mismatch.reason == "token" && !options_.key_from.empty())
      why += "; this side's is from " + options_.key_from;
    deny_as({.why = std::move(why), .refused = true});
  }

  std::string describe_end(std::string_view why) const {
    if (challenged_) return fmt::format("the handshake with {} failed: {}", name_of(to_), why);
    if (why.starts_with(kNotTroupe)) why.remove_prefix(kNotTroupe.size());
    return not_troupe(why);
  }

  std::string describe_timeout() const {
    if (!connection_) return fmt::format("{} ({} ms)", dial_->progress(), options_.timeout.count());
    const auto time = std::chrono::duration<double>(options_.timeout).count();
    if (challenged_) {
      return fmt::format(
          "{} did not complete the handshake within {:g} s: it is too busy or stopped; try again",
          name_of(to_), time);
    }
    const bool no_head = calls_a_process(options_.self) || !options_.nobody_there.empty();
    return fmt::format(
        "{} accepted the connection but said nothing within {:g} s: it is no Troupe {}, or it is "
        "too busy or stopped",
        name_of(to_), time,
        no_head ? "process" : "head (use the address that `troupe head` printed)");
  }

  std::string not_troupe(std::string_view symptom) const {
    const bool calls_head = options_.nobody_there.empty();
    return fmt::format("{} accepted the connection but does not speak Troupe: {}{}", name_of(to_),
                       symptom, calls_head ? ": use the address that `troupe head` printed" : "");
  }

  void deny(std::string why, bool may_be_busy = false) {
    deny_as({.why = std::move(why), .may_be_busy = may_be_busy});
  }
  void deny_as(Denied how) {
    if (!denied_) return;
    if (const auto connection = std::exchange(connection_, nullptr);
        connection && connection->is_open())
      connection->close();
    deadline_.cancel();
    dial_.reset();
    accepted_ = nullptr;
    std::exchange(denied_, nullptr)(std::move(how));
  }

  asio::io_context& loop_;
  Endpoint to_;
  SilenceTimer deadline_;
  std::shared_ptr<Dial> dial_;
  ConnectionPtr connection_;
  ClientOptions options_;
  std::function<void(ConnectionPtr, Accepted)> accepted_;
  std::function<void(Denied)> denied_;  // nullptr once it is over
  bool challenged_ = false;
  Transcript seen_;
};

}  // namespace

void connect(asio::io_context& loop, Endpoint to, ClientOptions options,
             std::function<void(ConnectionPtr, Accepted)> accepted,
             std::function<void(Denied)> denied) {
  std::make_shared<Client>(loop, std::move(to), std::move(options), std::move(accepted),
                           std::move(denied))
      ->start();
}

}  // namespace troupe::transport
