// What it costs to bring an object from one node to another over loopback, beside what the link
// itself carries in the same run: one row a case, or with --json one line {"name", "value", "unit"}
// a case. Each node is a process of its own.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <csignal>

#include <fmt/format.h>

#include "arguments.hpp"
#include "core/harness.hpp"
#include "store/codec.hpp"
#include "store/service/service.hpp"
#include "transfer/exchange.hpp"
#include "transport/socket/resolve.hpp"
#include "transport/socket/socket.hpp"

namespace {

using namespace troupe;
using bench::Clock, bench::median, bench::Report, bench::seconds_since;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr store::JobId kJob{1};
constexpr store::ProcessId kWriter{10}, kReader{20};

/// A node with a process that is played by the node itself: requests are made and answered on its
/// loop.
class Node {
 public:
  Node(store::NodeId number, store::ProcessId process)
      : process_(process), service_(loop_, {.cap_bytes = 1536 * kMiB, .spill_bytes = 0}) {
    listener_ = transport::Listener::tcp(loop_, "127.0.0.1", 0, [this](transport::Socket socket) {
      transport::ServerOptions server;
      server.cluster = "bench";
      server.key = [](const transport::Caller&) { return transport::Secret{}; };
      transport::accept(
          std::move(socket), std::move(server),
          [this](const transport::ConnectionPtr& connection, const transport::Accepted& who) {
            exchange_->accept(connection, who.caller);
          },
          [](const transport::Denied&) {});
    });
    transfer::ExchangeOptions options;
    options.cluster = "bench";
    options.self = {.node = number, .host = "127.0.0.1", .port = listener_->port()};
    exchange_ = std::make_unique<transfer::Exchange>(loop_, service_, options, nullptr);
    service_.attach(
        process_, kJob, [this](transport::Outgoing&& message) { told(message.root().asReader()); },
        [](const std::string&) { ::_exit(1); });
  }
  std::uint16_t port() const { return listener_->port(); }
  void run() { loop_.run(); }

  store::ObjectId put(std::uint64_t bytes) {
    const store::ObjectId object{process_, ++last_object_};
    answered_ = false;
    transport::Outgoing create;
    store::write_object(create.root().initObjectCreate().initObject(), object);
    create.root().getObjectCreate().setRequest(1);
    create.root().getObjectCreate().setOwner(process_.value());
    create.root().getObjectCreate().setBytes(bytes);
    say(create);
    wait();
    transport::Outgoing seal;
    store::write_object(seal.root().initObjectSeal().initObject(), object);
    say(seal);
    return object;
  }
  /// Brings it here, and forgets it.
  void pull(store::ObjectId object, std::uint64_t bytes, const store::NodeAddress& at) {
    answered_ = false;
    transport::Outgoing message;
    auto get = message.root().initObjectGet();
    get.setRequest(1);
    store::write_object(get.initObject(), object);
    get.setBytes(bytes);
    get.setOwner(kWriter.value());
    store::write_node(get.initAt(), at);
    say(message);
    wait();
    transport::Outgoing unpin;
    store::write_object(unpin.root().initObjectUnpin().initObject(), object);
    unpin.root().getObjectUnpin().setCount(1);
    say(unpin);
    service_.free(kJob, object);
  }

 private:
  void say(transport::Outgoing& message) {
    service_.on_message(process_, message.root().asReader());
  }
  void told(wire::Message::Reader message) {
    if (message.isObjectDeclined())
      throw std::runtime_error(message.getObjectDeclined().getMessage().cStr());
    answered_ = answered_ || message.isObjectCreated() || message.isObjectGot();
  }
  void wait() {
    while (!answered_) {
      loop_.restart();
      loop_.run_one();
    }
  }

  boost::asio::io_context loop_{1};
  const store::ProcessId process_;
  store::Service service_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transfer::Exchange> exchange_;
  std::uint64_t last_object_ = 0;
  bool answered_ = false;
};

/// A process that is gone with this object. -> what it writes first.
class Child {
 public:
  explicit Child(const std::function<void(int tell)>& body) {
    int line[2];
    if (::pipe2(line, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(line[1]);
      ::_exit(0);
    }
    if (::read(line[0], &port, sizeof port) != sizeof port)
      throw std::runtime_error("the other side has ended");
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::uint16_t port = 0;

 private:
  pid_t pid_ = 0;
};

void tell_port(int line, std::uint16_t port) {
  if (::write(line, &port, sizeof port) != sizeof port) ::_exit(1);
}

transport::SocketAddress loopback(std::uint16_t port) {
  std::string error;
  return transport::look_up("127.0.0.1", port, true, error).at(0);
}

/// Sends `bytes` on each connection: the link's own limit, with no checksum and memory that is warm
/// on both sides.
void send_plainly(int tell, std::uint64_t bytes) {
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  auto address = loopback(0);
  ::bind(listening, address.get(), address.size);
  ::listen(listening, 8);
  ::getsockname(listening, address.get(), &address.size);
  const std::vector<char> value(bytes, 'x');
  tell_port(tell, transport::port_of(address));
  for (;;) {
    const int client = ::accept(listening, nullptr, nullptr);
    for (std::uint64_t done = 0; done < bytes;) {
      const auto sent = ::send(client, value.data() + done,
                               std::min<std::uint64_t>(kMiB, bytes - done), MSG_NOSIGNAL);
      if (sent <= 0) break;
      done += static_cast<std::uint64_t>(sent);
    }
    ::close(client);
  }
}

double receive_plainly(std::uint16_t port, std::vector<char>& into) {
  const auto start = Clock::now();
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const auto address = loopback(port);
  if (::connect(socket, address.get(), address.size) != 0)
    throw std::runtime_error("no connection");
  for (std::size_t done = 0; done < into.size();) {
    const auto got =
        ::recv(socket, into.data() + done, std::min<std::size_t>(kMiB, into.size() - done), 0);
    if (got <= 0) throw std::runtime_error("the connection broke");
    done += static_cast<std::size_t>(got);
  }
  ::close(socket);
  return seconds_since(start);
}

/// Both in turns, so that what else the machine does meets both alike.
void measure(const Report& report, const std::string& size, std::uint64_t bytes) {
  const Child plain([bytes](int tell) { send_plainly(tell, bytes); });
  const Child origin([bytes](int tell) {
    Node node(store::NodeId{1}, kWriter);
    node.put(bytes);
    tell_port(tell, node.port());
    node.run();
  });
  Node here(store::NodeId{2}, kReader);
  std::vector<char> memory(bytes);
  std::vector<double> by_link, by_pull;
  const auto start = Clock::now();
  for (int round = 0; round < 3 || seconds_since(start) < report.options().seconds; ++round) {
    const auto link = receive_plainly(plain.port, memory);
    const auto began = Clock::now();
    here.pull({kWriter, 1}, bytes,
              {.node = store::NodeId{1}, .host = "127.0.0.1", .port = origin.port});
    const auto pull = seconds_since(began);
    if (round == 0) continue;  // to warm up
    by_link.push_back(link);
    by_pull.push_back(pull);
  }
  const auto rate = [bytes](double seconds) { return static_cast<double>(bytes) / 1e9 / seconds; };
  report.print("tcp_" + size, rate(median(by_link)), "GB/s");
  report.print("pull_" + size, rate(median(by_pull)), "GB/s");
  report.print(fmt::format("pull_{}_to_tcp", size), median(by_link) / median(by_pull), "ratio");
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options{.seconds = 2};
  bench::Arguments arguments(
      "What it costs to bring an object from one node to another over loopback.");
  arguments.option("--seconds", options.seconds, "of each size");
  arguments.flag("--json", options.json, "a JSON line for each case");
  arguments.parse(argc, argv);
  const Report report(options);
  measure(report, "1MiB", kMiB);
  measure(report, "16MiB", 16 * kMiB);
  measure(report, "256MiB", 256 * kMiB);
}
