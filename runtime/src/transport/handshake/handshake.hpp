#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/secret.hpp"
#include "ids/ids.hpp"
#include "transport/connection.hpp"
#include "transport/socket/endpoint.hpp"

namespace troupe::transport {

using config::Secret;

inline constexpr std::uint16_t kProtocolMin = 1;
inline constexpr std::uint16_t kProtocolMax = 1;

/// The key of one job, from the cluster's token: a worker process that has it cannot pass for a
/// node or a driver.
Secret job_key(const Secret& token, runtime::JobId job);

/// Who calls, as it says of itself.
struct Caller {
  wire::Role role = wire::Role::DRIVER;
  std::string cluster;           // empty: whichever answers
  runtime::JobId job{};          // role process
  runtime::ProcessId process{};  // role process
  runtime::ProcessId subject{};  // role process: the process it means to reach
};

struct Accepted {
  Caller caller;        // of a server: who called; of a client: itself
  std::string cluster;  // of the server
  std::uint16_t protocol = 0;
};
/// One message for a person: what differed, both values, what to do.
struct Denied {
  std::string why;
  /// Of a client: the server took the connection and has sent nothing wrong, only not enough in
  /// time. A head that is busy looks like this, and so does a port that is not Troupe's and says
  /// nothing. See patience.hpp.
  bool may_be_busy = false;
  /// Of a client: one side will not have the other (token, version, cluster, role); to try again
  /// changes nothing.
  bool refused = false;
  /// Of a client: nothing of the server was seen, not even that nothing listens there. Its host or
  /// the network in between is gone, for a moment or for ever.
  bool unreachable = false;
  /// Of a client: the server's host says that nothing listens there. Where a server was that lives
  /// as long as its process, that has ended.
  bool nobody_listens = false;
  /// Of a server: the caller has closed, or has ended, before it had proven itself.
  bool left = false;
};

/// client: Hello{range, role, cluster, nonce} -> server: Challenge{protocol, cluster, nonce, proof}
/// or Refusal
///         -> client: Proof -> server: Welcome or Refusal.
/// Proofs are HMAC-SHA256 over both nonces, role, cluster, job, process, subject and both protocol
/// ranges, under the token or the job's key, compared in constant time. The token itself never
/// travels. The server proves itself first. Both sides give up after `timeout`. `refuse` is asked
/// before anything is proven: a caller that is out of place hears that, and not that its key
/// differs.
struct ServerOptions {
  std::string cluster;
  // "": go on; else why not (wrong role, wrong subject, stopping)
  std::function<std::string(const Caller&)> refuse;
  std::function<Secret(const Caller&)> key;
  std::chrono::milliseconds timeout{10'000};  ///< that this process runs (silence_timer.hpp)
  // Tests only change these.
  std::uint16_t protocol_min = kProtocolMin, protocol_max = kProtocolMax;
};
/// Does once, with a handshake and a message between this process and itself, what the first of a
/// process pays for (milliseconds: OpenSSL's providers, the dynamic loader's symbols), so that
/// children that are forked later do not. Starts no thread, leaves nothing open. Where it cannot,
/// nothing is lost but that time.
void warm_up();

/// One that is under way, and gone once it is over.
class Handshake {
 public:
  virtual ~Handshake() = default;
  /// Closes the connection; `denied` is called with this reason, from within.
  virtual void give_up(std::string why) = 0;
};

/// Runs the server's side on a fresh socket, or on a connection within kBeforeHandshake that was
/// not started. One of the two is called once, on the loop. An accepted connection reads nothing
/// until it is handed over (Connection::hand_over); it may be sent to before, within Limits{}. What
/// listens for others takes an Acceptor, which bounds this.
std::weak_ptr<Handshake> accept(Socket socket, ServerOptions options,
                                std::function<void(ConnectionPtr, Accepted)> accepted,
                                std::function<void(Denied)> denied);
std::weak_ptr<Handshake> accept(ConnectionPtr connection, ServerOptions options,
                                std::function<void(ConnectionPtr, Accepted)> accepted,
                                std::function<void(Denied)> denied);

struct ClientOptions {
  Caller self;
  Secret key{};
  /// Where it was read, for the message that it differs; may be empty.
  std::string key_from = {};
  /// That this process runs: so that whoever asks hears why within a second.
  std::chrono::milliseconds timeout{900};
  /// Accepted with its own proof on the way: the server has proven itself, and reads what follows
  /// once it has seen that the caller did too. Its Welcome is a message that comes some time; a
  /// refusal instead of it closes the connection.
  bool awaits_welcome = true;
  std::uint16_t protocol_min = kProtocolMin, protocol_max = kProtocolMax;
  std::string nobody_there = {};  ///< what it means where nothing listens; empty: by the role
};
/// Connects and runs the client's side. One of the two is called once, on the loop.
void connect(asio::io_context& loop, Endpoint to, ClientOptions options,
             std::function<void(ConnectionPtr, Accepted)> accepted,
             std::function<void(Denied)> denied);

/// Accepts sockets for as long as it lives; belongs to one loop.
class Listener {
 public:
  using OnSocket = std::function<void(Socket)>;
  /// Port 0: any free one. Throws Refused, naming address and cause ("port 7420 is in use; ...").
  static std::unique_ptr<Listener> tcp(asio::io_context& loop, const std::string& host,
                                       std::uint16_t port, OnSocket on_socket);
  static std::unique_ptr<Listener> abstract_unix(asio::io_context& loop, const std::string& name,
                                                 OnSocket on_socket);
  virtual ~Listener() = default;
  virtual std::uint16_t port() const = 0;  // 0 for unix
};

}  // namespace troupe::transport
