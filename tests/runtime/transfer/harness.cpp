#include "harness.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard.hpp"
#include "store/codec.hpp"
#include "transport/socket/resolve.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::transfer::test {
namespace {

using troupe::test::kGuard;

std::uint64_t word_at(ObjectId object, std::uint64_t index) {
  auto word = (object.process.value() << 32 ^ object.number) * 0x9e3779b97f4a7c15u +
              index * 0xbf58476d1ce4e5b9u;
  word ^= word >> 29;
  return word * 0x94d049bb133111ebu;
}

template <class Bytes, class Each>
void for_each_word(Bytes bytes, Each each) {
  for (std::uint64_t at = 0; at < bytes.size(); at += 8) {
    each(bytes.subspan(at, std::min<std::uint64_t>(8, bytes.size() - at)), at / 8);
  }
}

/// A segment of loopback is 64 KiB: with less room than a few of them it stops for 200 ms at a
/// time.
void set_room(int fd) {
  const int bytes = 4 << 20;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

int connected_to(const NodeAddress& to) {
  std::string error;
  const auto address = transport::look_up(to.host, to.port, true, error).at(0);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_room(fd);
  if (::connect(fd, address.get(), address.size) == 0) return fd;
  ::close(fd);
  return -1;
}

bool write_all(int fd, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

transport::ServerOptions server_options(const transport::Secret& key) {
  transport::ServerOptions server;
  server.cluster = kCluster;
  server.key = [key](const transport::Caller&) { return key; };
  server.timeout = kGuard;
  return server;
}

}  // namespace

transport::Secret token() {
  transport::Secret secret{};
  secret.fill(7);
  return secret;
}

void fill(std::span<std::byte> bytes, ObjectId object) {
  for_each_word(bytes, [&](std::span<std::byte> part, std::uint64_t index) {
    const auto word = word_at(object, index);
    std::memcpy(part.data(), &word, part.size());
  });
}

bool is_filled(std::span<const std::byte> bytes, ObjectId object) {
  bool same = true;
  for_each_word(bytes, [&](std::span<const std::byte> part, std::uint64_t index) {
    const auto word = word_at(object, index);
    same = same && std::memcmp(part.data(), &word, part.size()) == 0;
  });
  return same;
}

bool is_at_rest(Node& node, const store::Statistics& before) {
  return eventually([&] {
    const auto now = node.statistics();
    return now.object_bytes == before.object_bytes && now.pinned_bytes == before.pinned_bytes &&
           now.objects == before.objects && now.waiting == before.waiting && node.sending() == 0;
  });
}

// ---- Node ---------------------------------------------------------------------------------------

Node::Node(store::NodeId number, NodeOptions options) : options_(std::move(options)) {
  address_ = {.node = number, .host = "127.0.0.1", .port = 0};
  store::ServiceOptions store;
  store.cap_bytes = options_.cap_bytes;
  store.spare_bytes = kMiB;
  store.spill_directory = options_.spill_directory;
  store.spill_bytes = options_.spill_directory.empty() ? 0 : std::uint64_t{1} << 30;
  store.patience = options_.patience;
  service_ = std::make_unique<store::Service>(loop_, store);
  listen();
  auto exchange = options_.exchange;
  exchange.cluster = kCluster;
  exchange.token = options_.key;
  exchange.self = address_;
  exchange.pull.connect = kGuard;  // however busy the machine is
  exchange_ = std::make_unique<Exchange>(
      loop_, *service_, exchange,
      [this](transport::Outgoing& message) { on_word_to_head(message.root()); });
  thread_ = std::thread([this] { loop_.run(); });
}

void Node::listen() {
  listener_ =
      transport::Listener::tcp(loop_, "127.0.0.1", address_.port,
                               [this](transport::Socket socket) { on_socket(std::move(socket)); });
  address_.port = listener_->port();
}

Node::~Node() {
  kill();
  work_.reset();
  loop_.stop();
  thread_.join();
}

void Node::kill() {
  on_loop([this] {
    listener_.reset();
    exchange_.reset();
    return true;
  });
}

void Node::stop_listening() {
  on_loop([this] {
    listener_.reset();
    return true;
  });
}

void Node::listen_again() {
  on_loop([this] {
    listen();
    return true;
  });
}

void Node::on_socket(transport::Socket socket) {
  transport::accept(
      std::move(socket), server_options(options_.key),
      [this](const transport::ConnectionPtr& connection, const transport::Accepted& who) {
        ++accepted_;
        if (exchange_) exchange_->accept(connection, who.caller);
      },
      [](const transport::Denied&) {});
}

void Node::on_word_to_head(wire::Message::Reader message) {
  if (message.isNodeWatch()) {
    nodes_watched_.insert(store::NodeId(message.getNodeWatch()));
  } else if (message.isOrphaned()) {
    const auto orphans = message.getOrphaned();
    for (const auto number : orphans.getNumbers())
      orphaned_[ProcessId(orphans.getOwner())].push_back({ProcessId(orphans.getWriter()), number});
  } else {
    REQUIRE(message.isOwnerWatch());
    CHECK(watched_.insert(ProcessId(message.getOwnerWatch())).second);
  }
}

void Node::attach(ProcessId process, JobId job) {
  const int arena = on_loop([&] {
    auto attached = service_->attach(
        process, job,
        [this, process](transport::Outgoing&& message) { told(process, std::move(message)); },
        [](const std::string& why) { FAIL(why); });
    processes_[process].job = job;
    return std::get<int>(attached);
  });
  auto mapping = store::Mapping::map(arena);
  processes_[process].memory =
      std::make_unique<store::Mapping>(std::move(std::get<store::Mapping>(mapping)));
}

void Node::detach(ProcessId process) {
  on_loop([&] {
    service_->detach(process);
    processes_.erase(process);
    return true;
  });
}

void Node::told(ProcessId process, transport::Outgoing&& message) {
  const auto sent = message.root().asReader();
  auto& asked = processes_.at(process).asked;
  Answer answer;
  store::RequestId request;
  if (sent.isObjectCreated()) {
    request = store::RequestId(sent.getObjectCreated().getRequest());
    answer.extent = store::read_extent(sent.getObjectCreated().getExtent());
  } else if (sent.isObjectGot()) {
    request = store::RequestId(sent.getObjectGot().getRequest());
    answer.extent = store::read_extent(sent.getObjectGot().getExtent());
    answer.bytes = sent.getObjectGot().getBytes();
  } else if (sent.isObjectDeclined()) {
    const auto declined = sent.getObjectDeclined();
    request = store::RequestId(declined.getRequest());
    answer.refusal = {static_cast<store::Refusal::Kind>(declined.getKind()), declined.getMessage()};
  } else if (sent.isObjectRecall() && sent.getObjectRecall().getRound() != 0) {
    const auto round = sent.getObjectRecall().getRound();
    return boost::asio::post(loop_, [this, process, round] {
      say(process, [&](wire::Message::Builder out) { out.initObjectReturn().setRound(round); });
    });
  }
  if (auto waiting = asked.extract(request)) waiting.mapped().set_value(std::move(answer));
}

void Node::say(ProcessId from, const std::function<void(wire::Message::Builder)>& write) {
  transport::Outgoing message;
  write(message.root());
  service_->on_message(from, message.root().asReader());
}

ObjectId Node::put(ProcessId process, std::uint64_t bytes, ProcessId owner) {
  ObjectId object{process, 0};
  auto created = on_loop([&] {
    auto& writer = processes_.at(process);
    object.number = ++writer.last_object;
    const auto request = ++last_request_;
    auto answer = writer.asked[request].get_future();
    say(process, [&](wire::Message::Builder out) {
      auto create = out.initObjectCreate();
      create.setRequest(request.value());
      store::write_object(create.initObject(), object);
      create.setOwner((owner ? owner : process).value());
      create.setBytes(bytes);
    });
    return answer;
  });
  const auto answer = created.get();
  REQUIRE_FALSE(answer.refusal);
  fill(processes_.at(process).memory->writable(answer.extent).first(bytes), object);
  on_loop([&] {
    say(process, [&](wire::Message::Builder out) {
      store::write_object(out.initObjectSeal().initObject(), object);
    });
    return true;
  });
  return object;
}

std::future<Answer> Node::ask(ProcessId process, ObjectId object, std::uint64_t bytes,
                              const NodeAddress& at, ProcessId owner) {
  return on_loop([&] {
    const auto request = ++last_request_;
    auto answer = processes_.at(process).asked[request].get_future();
    say(process, [&](wire::Message::Builder out) {
      auto get = out.initObjectGet();
      get.setRequest(request.value());
      store::write_object(get.initObject(), object);
      get.setBytes(bytes);
      get.setOwner((owner ? owner : object.process).value());
      store::write_node(get.initAt(), at);
    });
    return answer;
  });
}

Answer Node::get(ProcessId process, ObjectId object, std::uint64_t bytes, const NodeAddress& at,
                 ProcessId owner) {
  auto answer = ask(process, object, bytes, at, owner);
  REQUIRE(answer.wait_for(2 * kGuard) == std::future_status::ready);
  return answer.get();
}

bool Node::has(ProcessId process, const Answer& answer, ObjectId object) {
  if (answer.refusal) UNSCOPED_INFO(answer.refusal->message);
  if (answer.refusal) return false;
  return is_filled(processes_.at(process).memory->readable(answer.extent).first(answer.bytes),
                   object);
}

void Node::unpin(ProcessId process, ObjectId object) {
  on_loop([&] {
    say(process, [&](wire::Message::Builder out) {
      auto unpin = out.initObjectUnpin();
      store::write_object(unpin.initObject(), object);
      unpin.setCount(1);
    });
    return true;
  });
}

void Node::free(ProcessId process, ObjectId object, const NodeAddress& at) {
  on_loop([&] {
    say(process, [&](wire::Message::Builder out) {
      auto free = out.initObjectFree();
      store::write_object(free.initObject(), object);
      store::write_node(free.initAt(), at);
    });
    return true;
  });
}

store::Statistics Node::statistics() {
  return on_loop([this] { return service_->statistics(); });
}

std::size_t Node::sending() {
  return on_loop([this] { return exchange_ ? exchange_->sending() : 0; });
}

std::size_t Node::freeing() {
  return on_loop([this] { return exchange_ ? exchange_->freeing() : 0; });
}

std::set<store::NodeId> Node::nodes_watched() {
  return on_loop([this] { return nodes_watched_; });
}

std::map<ProcessId, std::vector<ObjectId>> Node::orphaned() {
  return on_loop([this] { return orphaned_; });
}

std::set<ProcessId> Node::watched() {
  return on_loop([this] { return watched_; });
}

void Node::owner_ended(ProcessId owner) {
  on_loop([&] {
    transport::Outgoing message;
    message.root().setOwnerEnded(owner.value());
    return exchange_->on_head_message(message.root().asReader());
  });
}

void Node::node_ended(store::NodeId node) {
  on_loop([&] {
    transport::Outgoing message;
    message.root().setNodeEnded(node.value());
    return exchange_->on_head_message(message.root().asReader());
  });
}

void Node::job_ended(JobId job) {
  on_loop([&] {
    service_->job_ended(job);
    exchange_->job_ended(job);
    return true;
  });
}

// ---- Proxy --------------------------------------------------------------------------------------

Proxy::Proxy(const NodeAddress& to, OnBytes on_bytes, OnBytes on_forward)
    : to_(to), on_bytes_(std::move(on_bytes)), on_forward_(std::move(on_forward)) {
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_room(listening_);
  std::string error;
  auto address = transport::look_up("127.0.0.1", 0, true, error).at(0);
  REQUIRE(::bind(listening_, address.get(), address.size) == 0);
  REQUIRE(::listen(listening_, 16) == 0);
  REQUIRE(::getsockname(listening_, address.get(), &address.size) == 0);
  port_ = transport::port_of(address);
  thread_ = std::thread([this] { serve(listening_); });
}

Proxy::~Proxy() {
  ends_ = true;
  thread_.join();
  for (auto& passing : passing_) passing.join();
  ::close(listening_);
}

void Proxy::serve(int listening) {
  while (!ends_) {
    pollfd ready{listening, POLLIN, 0};
    if (::poll(&ready, 1, 20) != 1) continue;
    const int client = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const std::lock_guard lock(mutex_);
    passing_.emplace_back([this, client, number = ++connections_] { pass(client, number); });
  }
}

void Proxy::pass(int client, int number) {
  const int server = connected_to(to_);
  std::uint64_t offset = 0, forwarded = 0;
  std::vector<char> bytes(64 << 10);
  while (server >= 0 && !ends_) {
    std::array<pollfd, 2> ready{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), 20) < 0) break;
    if (ready[0].revents != 0) {
      const auto got = ::recv(client, bytes.data(), bytes.size(), 0);
      if (got <= 0) break;
      const auto part = std::span(bytes).first(static_cast<std::size_t>(got));
      if (on_forward_ && !on_forward_(number, forwarded, part)) break;
      if (!write_all(server, part)) break;
      forwarded += part.size();
    }
    if (ready[1].revents != 0) {
      const auto got = ::recv(server, bytes.data(), bytes.size(), 0);
      if (got <= 0) break;
      const auto part = std::span(bytes).first(static_cast<std::size_t>(got));
      if (!on_bytes_(number, offset, part) || !write_all(client, part)) break;
      offset += part.size();
      came_back_ += part.size();
    }
  }
  ::close(client);
  if (server >= 0) ::close(server);
}

Proxy::OnBytes slowly(std::uint64_t bytes_per_second) {
  return [bytes_per_second](int, std::uint64_t, std::span<char> bytes) {
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(1'000'000'000 * bytes.size() / bytes_per_second));
    return true;
  };
}

// ---- FakeNode -----------------------------------------------------------------------------------

FakeNode::FakeNode(std::function<std::string(wire::TransferRequest::Reader)> answer,
                   transport::Secret key)
    : answer_(std::move(answer)) {
  listener_ =
      transport::Listener::tcp(loop_, "127.0.0.1", 0, [this, key](transport::Socket socket) {
        transport::accept(
            std::move(socket), server_options(key),
            [this](const transport::ConnectionPtr& connection, const transport::Accepted&) {
              connection->hand_over(
                  {},
                  [this, connection](wire::Message::Reader message) {
                    if (!message.isTransferRequest()) return;
                    const auto keep = connection;
                    ++requests_;
                    const auto bytes = answer_(message.getTransferRequest());
                    auto socket = keep->detach();
                    write_all(socket.get(), bytes);
                    sockets_.push_back(std::move(socket));
                  },
                  [connection](const std::string&) {});
            },
            [](const transport::Denied&) {});
      });
  port_ = listener_->port();
  thread_ = std::thread([this] { loop_.run(); });
}

FakeNode::~FakeNode() {
  loop_.stop();
  thread_.join();
  listener_.reset();
}

bool runs_until(boost::asio::io_context& loop, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 1min;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    loop.restart();
    loop.run_one_for(10ms);
  }
  return true;
}

}  // namespace troupe::transfer::test
