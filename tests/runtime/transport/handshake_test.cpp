#include "transport/handshake/handshake.hpp"

#include "../../support/id_literals.hpp"
#include "transport/frame.hpp"
#include "transport/harness.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

Secret secret(unsigned char fill) {
  Secret key;
  key.fill(fill);
  return key;
}

struct Result {
  ConnectionPtr connection;
  Accepted accepted;
  std::vector<std::string> denied;
  int calls = 0;

  auto on_accepted() {
    return [this](ConnectionPtr open, Accepted who) {
      ++calls;
      connection = std::move(open);
      accepted = std::move(who);
    };
  }
  auto on_denied() {
    return [this](Denied why) {
      ++calls;
      denied.push_back(why.why);
    };
  }
};

/// A listener that runs handshakes, and what came of the last.
struct Cluster {
  explicit Cluster(Loop& run, bool tcp = true) : loop(run) {
    server_options.cluster = "blue";
    server_options.key = [](const Caller& caller) {
      return caller.role == wire::Role::PROCESS ? job_key(secret(1), caller.job) : secret(1);
    };
    server_options.timeout = kNoDeadline;
    client_options.key = secret(1);
    client_options.timeout = kNoDeadline;
    const auto on_socket = [this](Socket socket) {
      accept(std::move(socket), server_options, server.on_accepted(), server.on_denied());
    };
    if (tcp) {
      listener = Listener::tcp(loop.context, "127.0.0.1", 0, on_socket);
      to = {.host = "127.0.0.1", .port = listener->port(), .unix_name = ""};
    } else {
      to = {.host = "", .port = 0, .unix_name = "troupe-test-" + std::to_string(::getpid())};
      listener = Listener::abstract_unix(loop.context, to.unix_name, on_socket);
    }
  }

  void meet() {
    server = {};
    client = {};
    connect(loop.context, to, client_options, client.on_accepted(), client.on_denied());
    REQUIRE(loop.until([&] { return client.calls > 0 && server.calls > 0; }));
    loop.until([] { return false; }, 10ms);
    CHECK(client.calls == 1);
    CHECK(server.calls == 1);
  }
  void refuse_to_meet() {
    meet();
    REQUIRE(client.denied.size() == 1);
    REQUIRE(server.denied.size() == 1);
    CHECK(!client.connection);
    CHECK(!server.connection);
  }

  Loop& loop;
  ServerOptions server_options;
  ClientOptions client_options;
  std::unique_ptr<Listener> listener;
  Endpoint to;
  Result server, client;
};

ClientOptions without_deadline() {
  ClientOptions options;
  options.timeout = kNoDeadline;
  return options;
}

/// Connects where there is no Troupe, and returns what the client is told.
std::string refused_by(Loop& loop, Endpoint to, ClientOptions options = without_deadline()) {
  Result client;
  connect(loop.context, std::move(to), std::move(options), client.on_accepted(),
          client.on_denied());
  REQUIRE(loop.until([&] { return client.calls > 0; }));
  loop.until([] { return false; }, 10ms);
  CHECK(client.calls == 1);
  REQUIRE(client.denied.size() == 1);
  return client.denied[0];
}

/// Something that is not Troupe: it says `banner` to whoever comes, and keeps or drops them.
struct Stranger {
  Stranger(Loop& loop, std::string banner, bool keep) {
    listener = Listener::tcp(loop.context, "127.0.0.1", 0, [this, banner, keep](Socket socket) {
      if (!banner.empty())
        ::send(socket.native_handle(), banner.data(), banner.size(), MSG_NOSIGNAL);
      if (keep) kept.push_back(std::move(socket));
    });
  }
  Endpoint endpoint() const {
    return {.host = "127.0.0.1", .port = listener->port(), .unix_name = ""};
  }
  std::string name() const { return "127.0.0.1:" + std::to_string(listener->port()); }

  std::unique_ptr<Listener> listener;
  std::vector<Socket> kept;
};

}  // namespace

TEST_CASE("two sides with one token meet, and talk", "[transport][handshake]") {
  const bool tcp = GENERATE(true, false);
  Loop loop;
  Cluster cluster(loop, tcp);
  cluster.client_options.self = {
      .role = wire::Role::NODE, .cluster = "", .job = {}, .process = {}, .subject = {}};
  cluster.meet();

  REQUIRE(cluster.client.connection);
  REQUIRE(cluster.server.connection);
  CHECK(cluster.client.accepted.cluster == "blue");
  CHECK(cluster.client.accepted.protocol == kProtocolMax);
  CHECK(cluster.server.accepted.caller.role == wire::Role::NODE);

  End server, client;
  client.connection = cluster.client.connection;
  // The limits of a stranger hold no more.
  client.connection->send(text_message(std::string(1 << 20, 'x')));
  client.connection->hand_over({}, client.on_message(), client.on_closed());
  server.connection = cluster.server.connection;
  server.connection->hand_over({}, server.on_message(), server.on_closed());
  server.connection->send(text_message("hello"));
  REQUIRE(loop.until([&] { return server.texts.size() == 1 && client.texts.size() == 1; }));
  CHECK(server.texts[0].size() == 1 << 20);
  CHECK(client.texts[0] == "hello");
}

TEST_CASE("the server's first message, sent with the welcome, reaches the client's user",
          "[transport][handshake]") {
  Loop loop;
  ServerOptions options;
  options.key = [](const Caller&) { return secret(1); };
  options.timeout = kNoDeadline;
  ConnectionPtr server;
  const auto listener = Listener::tcp(loop.context, "127.0.0.1", 0, [&](Socket socket) {
    accept(
        std::move(socket), options,
        [&](ConnectionPtr open, Accepted) {
          server = std::move(open);
          // Goes out in one write with the welcome.
          server->send(text_message(std::string(100'000, 'y')));
        },
        [](Denied denied) { FAIL(denied.why); });
  });
  End user;
  connect(
      loop.context, {.host = "127.0.0.1", .port = listener->port(), .unix_name = ""},
      {.self = {}, .key = secret(1), .timeout = kNoDeadline},
      [&](ConnectionPtr open, Accepted) {
        user.connection = std::move(open);
        user.connection->hand_over({}, user.on_message(), user.on_closed());
      },
      [](Denied denied) { FAIL(denied.why); });

  REQUIRE(loop.until([&] { return user.texts.size() == 1; }));
  CHECK(user.texts[0].size() == 100'000);
}

TEST_CASE("a process proves the key of its job, and says whom it means to reach",
          "[transport][handshake]") {
  Loop loop;
  Cluster cluster(loop);
  cluster.client_options.self = {.role = wire::Role::PROCESS,
                                 .cluster = "blue",
                                 .job = 7_job,
                                 .process = 21_process,
                                 .subject = 22_process};
  cluster.client_options.key = job_key(secret(1), 7_job);
  cluster.meet();

  REQUIRE(cluster.server.connection);
  CHECK(cluster.server.accepted.caller.job == 7_job);
  CHECK(cluster.server.accepted.caller.process == 21_process);
  CHECK(cluster.server.accepted.caller.subject == 22_process);
}

TEST_CASE("another protocol is refused with both ranges on both sides",
          "[transport][handshake][refusal]") {
  Loop loop;
  Cluster cluster(loop);
  cluster.client_options.protocol_min = cluster.client_options.protocol_max = 2;
  cluster.refuse_to_meet();

  CHECK_THAT(cluster.client.denied[0],
             StartsWith("127.0.0.1:" + std::to_string(cluster.to.port) +
                        " speaks protocol 1 to 1 (troupe 0.1.0), this side 2 to 2 (troupe 0.1.0): "
                        "install the same version on both"));
  CHECK_THAT(cluster.server.denied[0],
             StartsWith("this side speaks protocol 1 to 1 (troupe 0.1.0), the caller 127.0.0.1:") &&
                 Contains(" 2 to 2 (troupe 0.1.0): install the same version on both"));
}

TEST_CASE("of two ranges the highest protocol that both speak is taken", "[transport][handshake]") {
  Loop loop;
  Cluster cluster(loop);
  cluster.server_options.protocol_max = 5;
  cluster.client_options.protocol_min = 1;
  cluster.client_options.protocol_max = 3;
  cluster.meet();

  REQUIRE(cluster.client.connection);
  CHECK(cluster.client.accepted.protocol == 3);
  CHECK(cluster.server.accepted.protocol == 3);
}

TEST_CASE("another token is refused on both sides, with what tells them apart and what to do",
          "[transport][handshake][refusal]") {
  Loop loop;
  Cluster cluster(loop);
  cluster.client_options.key = secret(2);
  cluster.refuse_to_meet();

  for (const auto& text : {cluster.client.denied[0], cluster.server.denied[0]}) {
    CHECK_THAT(text, StartsWith("the token differs: ") && Contains("copy the head's token file") &&
                         Contains("set TROUPE_TOKEN"));
    CHECK_THAT(text, !Contains("unknown"));
  }
}

TEST_CASE("the key of another job is refused on both sides", "[transport][handshake][refusal]") {
  Loop loop;
  Cluster cluster(loop);
  cluster.client_options.self = {.role = wire::Role::PROCESS,
                                 .cluster = "",
                                 .job = 7_job,
                                 .process = 21_process,
                                 .subject = 22_process};
  cluster.client_options.key = job_key(secret(1), 8_job);
  cluster.refuse_to_meet();

  CHECK_THAT(cluster.client.denied[0], StartsWith("the job's key differs: "));
  CHECK_THAT(cluster.server.denied[0], StartsWith("the job's key differs: "));
}

TEST_CASE("another cluster is refused with both names on both sides",
          "[transport][handshake][refusal]") {
  Loop loop;
  Cluster cluster(loop);
  cluster.client_options.self.cluster = "green";
  cluster.refuse_to_meet();

  CHECK_THAT(cluster.client.denied[0], StartsWith("the cluster differs: 127.0.0.1:") &&
                                           Contains("'blue'") && Contains("'green'"));
  CHECK_THAT(cluster.server.denied[0],
             StartsWith("the cluster differs: this side belongs to 'blue'") && Contains("'green'"));
}

TEST_CASE("what the server's owner says against a caller reaches both sides",
          "[transport][handshake][refusal]") {
  Loop loop;
  Cluster cluster(loop);
  cluster.server_options.refuse = [](const Caller&) { return "the head is stopping"; };
  cluster.refuse_to_meet();

  CHECK_THAT(cluster.client.denied[0],
             StartsWith("127.0.0.1:") && Contains("refuses: the head is stopping"));
  CHECK_THAT(cluster.server.denied[0], StartsWith("the caller 127.0.0.1:") &&
                                           Contains("(driver) was refused: the head is stopping"));
}

TEST_CASE("a caller without the key that goes on all the same is refused",
          "[transport][handshake][refusal]") {
  Loop loop;
  Cluster cluster(loop);
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(cluster.to.port);
  REQUIRE(::connect(fd.get(), address.get(), address.size) == 0);
  End thief;
  Outgoing hello;
  hello.root().initHello().setProtocolMin(1);
  hello.root().getHello().setProtocolMax(1);
  hello.root().getHello().initNonce(32);
  std::string refusal;
  auto connection = Connection::make(adopted(loop.context, AF_INET, std::move(fd)));
  connection->start(
      [&](wire::Message::Reader message) {
        if (message.isRefusal()) refusal = message.getRefusal().getReason();
        if (!message.isChallenge()) return;
        Outgoing proof;  // the server's own proof, sent back
        proof.root().initProof().setProof(message.getChallenge().getProof());
        connection->send(std::move(proof));
      },
      [](const std::string&) {});
  connection->send(std::move(hello));

  REQUIRE(loop.until([&] { return !cluster.server.denied.empty() && !refusal.empty(); }));
  CHECK(refusal == "token");
  CHECK_THAT(cluster.server.denied[0], StartsWith("the token differs: "));
  CHECK(!cluster.server.connection);
}

TEST_CASE("a server without the token gets no proof from a client",
          "[transport][handshake][refusal]") {
  Loop loop;
  bool got_proof = false;
  bool got_refusal = false;
  ConnectionPtr server;
  const auto listener = Listener::tcp(loop.context, "127.0.0.1", 0, [&](Socket socket) {
    server = Connection::make(std::move(socket));
    server->start(
        [&](wire::Message::Reader message) {
          got_proof = got_proof || message.isProof();
          got_refusal = got_refusal || message.isRefusal();
          if (!message.isHello()) return;
          Outgoing challenge;
          auto out = challenge.root().initChallenge();
          out.setProtocol(1);
          out.initNonce(32);
          out.initProof(32);
          server->send(std::move(challenge));
        },
        [](const std::string&) {});
  });

  CHECK_THAT(refused_by(loop, {.host = "127.0.0.1", .port = listener->port(), .unix_name = ""}),
             StartsWith("the token differs: "));
  REQUIRE(loop.until([&] { return got_refusal; }));
  CHECK(!got_proof);
}

TEST_CASE("a port that is not Troupe's is named with what it sent",
          "[transport][handshake][refusal]") {
  Loop loop;
  const auto [banner, shown] = GENERATE(table<std::string, std::string>({
      {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
       "it sent 'HTTP/1.1 400 Bad Request'"},
      {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "it sent 'SSH-2.0-OpenSSH_9.2p1 Debian-2'"},
      {std::string("\x15\x03\x01\x00\x02\x02\x28", 7), "it sent '\\x15\\x03\\x01\\x00\\x02\\x02('"},
  }));
  Stranger stranger(loop, banner, true);

  CHECK(refused_by(loop, stranger.endpoint()) ==
        stranger.name() + " accepted the connection but does not speak Troupe: " + shown +
            ": use the address that `troupe head` printed");
}

TEST_CASE("a port that hangs up is named at once, and one that says nothing at the deadline",
          "[transport][handshake][refusal]") {
  Loop loop;
  Stranger hangs_up(loop, "", false);
  CHECK_THAT(
      refused_by(loop, hangs_up.endpoint()),
      StartsWith(
          hangs_up.name() +
          " accepted the connection but does not speak Troupe: the peer closed the connection"));
  Stranger silent(loop, "", true);
  CHECK_THAT(refused_by(loop, silent.endpoint(), {}),
             StartsWith(silent.name() + " accepted the connection but said nothing within 0.9 s: "
                                        "it is no Troupe head (use the address "));
  ClientOptions process;
  process.self.role = wire::Role::PROCESS;
  process.self.subject = 22_process;
  CHECK_THAT(refused_by(loop, silent.endpoint(), process),
             Contains("it is no Troupe process, or it is too busy"));
}

TEST_CASE("an address without a listener is named at once", "[transport][handshake][refusal]") {
  Loop loop;
  auto listener = Listener::tcp(loop.context, "127.0.0.1", 0, [](Socket) {});
  const auto port = listener->port();
  listener.reset();
  const auto name = "127.0.0.1:" + std::to_string(port);
  auto process = without_deadline();
  process.self.role = wire::Role::PROCESS;

  CHECK(refused_by(loop, {.host = "127.0.0.1", .port = port, .unix_name = ""}) ==
        "nothing listens on " + name + ": is the head running? start it with `troupe head`");
  CHECK(refused_by(loop, {.host = "127.0.0.1", .port = port, .unix_name = ""}, process) ==
        "nothing listens on " + name + ": the process that listened there has ended");
  CHECK_THAT(refused_by(loop, {.host = "localhost", .port = port, .unix_name = ""}),
             StartsWith("nothing listens on localhost:"));
  CHECK_THAT(refused_by(loop, {.host = "", .port = 0, .unix_name = "troupe-nobody"}),
             StartsWith("nothing listens on unix socket @troupe-nobody: "));
}

TEST_CASE("a host that cannot be reached is named at once", "[transport][handshake][refusal]") {
  Loop loop;
  CHECK_THAT(refused_by(loop, {.host = "255.255.255.255", .port = 7420, .unix_name = ""}),
             StartsWith("255.255.255.255:7420 cannot be reached: "));
}

TEST_CASE("an address where nobody answers is named at the deadline",
          "[transport][handshake][refusal]") {
  Loop loop;
  // A listener that accepts nobody, and whose queue is full: the kernel drops what comes.
  OwnedFd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = loopback(0);
  REQUIRE(::bind(full.get(), address.get(), address.size) == 0);
  REQUIRE(::listen(full.get(), 0) == 0);
  REQUIRE(::getsockname(full.get(), address.get(), &address.size) == 0);
  std::vector<OwnedFd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)!::connect(waiting.back().get(), address.get(), address.size);
  }
  const auto name = "127.0.0.1:" + std::to_string(port_of(address));

  CHECK_THAT(refused_by(loop, {.host = "127.0.0.1", .port = port_of(address), .unix_name = ""}, {}),
             StartsWith(name + " does not answer: check the address"));
}

TEST_CASE("a name that does not resolve is named at the deadline or before",
          "[transport][handshake][refusal]") {
  Loop loop;
  CHECK_THAT(refused_by(loop, {.host = "no-such-host.invalid", .port = 7420, .unix_name = ""}, {}),
             StartsWith("the name 'no-such-host.invalid' does not resolve: "));
}

TEST_CASE("a caller that sends its hello byte by byte, or none, is turned away at the deadline",
          "[transport][handshake][refusal]") {
  const bool trickles = GENERATE(true, false);
  Loop loop;
  Cluster cluster(loop);
  cluster.server_options.timeout = 1s;
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(cluster.to.port);
  REQUIRE(::connect(fd.get(), address.get(), address.size) == 0);
  Outgoing hello(3000);
  hello.root().initHello().initCluster(3000);
  const auto bytes = frame(std::move(hello));

  std::size_t sent = 0;
  asio::steady_timer tick(loop.context);
  // The whole would take longer than this test waits.
  const std::function<void()> trickle = [&] {
    sent += ::send(fd.get(), bytes.data() + sent, 1, MSG_NOSIGNAL) == 1 ? 1 : 0;
    tick.expires_after(50ms);
    tick.async_wait([&](auto stopped) {
      if (!stopped && sent < bytes.size()) trickle();
    });
  };
  if (trickles) trickle();

  REQUIRE(loop.until([&] { return cluster.server.calls > 0; }));
  CHECK_THAT(cluster.server.denied.at(0),
             StartsWith("the caller 127.0.0.1:") &&
                 Contains("did not complete the handshake within 1000 ms"));
  CHECK((sent > 0) == trickles);
}

TEST_CASE("a stranger at the server's port is named with what it sent",
          "[transport][handshake][refusal]") {
  Loop loop;
  Cluster cluster(loop);
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(cluster.to.port);
  REQUIRE(::connect(fd.get(), address.get(), address.size) == 0);
  SECTION("a browser") {
    REQUIRE(::send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
    REQUIRE(loop.until([&] { return cluster.server.calls > 0; }));
    CHECK_THAT(cluster.server.denied.at(0),
               Contains(" does not speak Troupe: it sent 'GET / HTTP/1.1'"));
  }
  SECTION("a hello that is too large") {
    REQUIRE(::send(fd.get(), "TRP1\x00\x00\x10\x00", 8, MSG_NOSIGNAL) == 8);
    REQUIRE(loop.until([&] { return cluster.server.calls > 0; }));
    CHECK_THAT(cluster.server.denied.at(0),
               Contains("it announces 1048576 bytes, the limit is 4096"));
  }
  SECTION("a message that is no hello") {
    const auto bytes = frame(text_message("x"));
    REQUIRE(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
    REQUIRE(loop.until([&] { return cluster.server.calls > 0; }));
    CHECK_THAT(cluster.server.denied.at(0),
               Contains("sent something else than its part of the handshake"));
  }
  cluster.meet();  // the listener lives on
  CHECK(cluster.client.connection);
}

TEST_CASE("a message that was changed on its way makes the proofs differ",
          "[transport][handshake]") {
  // A man in the middle who changes one field of the hello: the two sides have seen different
  // transcripts.
  Loop loop;
  Cluster cluster(loop);
  OwnedFd to_server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(cluster.to.port);
  REQUIRE(::connect(to_server.get(), address.get(), address.size) == 0);
  const auto server_side = Connection::make(adopted(loop.context, AF_INET, std::move(to_server)));
  ConnectionPtr client_side;
  const auto forward = [](ConnectionPtr& to, wire::Message::Reader message) {
    Outgoing copy;
    if (message.isHello()) {
      copy.root().setHello(message.getHello());
      copy.root().getHello().setSubject(99);
    } else if (message.isChallenge()) {
      copy.root().setChallenge(message.getChallenge());
    } else if (message.isRefusal()) {
      copy.root().setRefusal(message.getRefusal());
    }
    to->send(std::move(copy));
  };
  auto server_end = server_side;
  const auto listener = Listener::tcp(loop.context, "127.0.0.1", 0, [&](Socket socket) {
    client_side = Connection::make(std::move(socket));
    client_side->start([&](wire::Message::Reader message) { forward(server_end, message); },
                       [](const std::string&) {});
    server_side->start([&](wire::Message::Reader message) { forward(client_side, message); },
                       [](const std::string&) {});
  });

  CHECK_THAT(refused_by(loop, {.host = "127.0.0.1", .port = listener->port(), .unix_name = ""},
                        {.self = {}, .key = secret(1), .timeout = kNoDeadline}),
             StartsWith("the token differs: "));
  REQUIRE(loop.until([&] { return !cluster.server.denied.empty(); }));
}
