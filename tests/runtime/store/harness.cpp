#include "harness.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

#include "transport/socket/descriptors.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::store::test {
namespace {

void send_descriptor(int line, int fd) {
  char byte = 'd';
  iovec piece{&byte, 1};
  if (transport::send_pieces(line, {&piece, 1}, {&fd, 1}, 0) != 1)
    throw std::runtime_error("the descriptor was not sent");
}

os::UniqueFd receive_descriptor(int line) {
  char byte = 0;
  std::vector<os::UniqueFd> descriptors;
  if (transport::receive_piece(line, {&byte, 1}, descriptors, 0) != 1 || descriptors.empty())
    return {};
  return std::move(descriptors.front());
}

transport::ConnectionPtr connect(boost::asio::io_context& loop, os::UniqueFd socket) {
  boost::system::error_code error;
  auto adopted = transport::adopt(loop, AF_UNIX, transport::OwnedFd(socket.release()), error);
  if (error) throw boost::system::system_error(error);
  return transport::Connection::make(std::move(adopted));
}

/// A word is a packet.
void write_word(int line, const std::string& word) {
  if (::send(line, word.data(), word.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(word.size())) {
    throw std::runtime_error("nobody hears " + word);
  }
}
std::string read_word(int line) {
  std::array<char, 4096> word;
  const auto got = ::recv(line, word.data(), word.size(), 0);
  return got > 0 ? std::string(word.data(), static_cast<std::size_t>(got)) : "";
}

std::pair<os::UniqueFd, os::UniqueFd> make_pair_of(int type) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) == 0);
  return {os::UniqueFd(ends[0]), os::UniqueFd(ends[1])};
}

[[noreturn]] void be_worker(ProcessId number, os::UniqueFd socket, int line,
                            const WorkerProcess::Body& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 1;
  try {
    const auto arena = receive_descriptor(line);
    LocalClient local(arena.get(), number, std::move(socket));
    Worker worker{local.client(), line, number};
    body(worker);
    code = 0;
  } catch (const std::exception& error) {
    std::cerr << "process " << number << ": " << error.what() << std::endl;
  }
  ::_exit(code);
}

}  // namespace

ServiceOptions options_for_test(std::uint64_t cap_bytes, const std::string& spill_directory) {
  ServiceOptions options;
  options.cap_bytes = cap_bytes;
  options.spare_bytes = kMiB;
  options.patience = std::chrono::seconds(30);
  options.growth_retry = std::chrono::milliseconds(50);
  options.spill_directory = spill_directory;
  if (spill_directory.empty()) options.spill_bytes = 0;
  return options;
}

std::pair<os::UniqueFd, os::UniqueFd> socket_pair() { return make_pair_of(SOCK_STREAM); }

Attached attach(TestNode& node, ProcessId number, JobId job, os::UniqueFd socket) {
  Attached attached{connect(node.loop, std::move(socket)), -1};
  auto* link = attached.link.get();
  auto arena = node.service->attach(
      number, job, [link](transport::Outgoing&& message) { link->send(std::move(message)); },
      [](const std::string& why) { FAIL("a violation: " << why); });
  REQUIRE(std::holds_alternative<int>(arena));
  attached.arena = std::get<int>(arena);
  link->start(
      [&node, number](wire::Message::Reader message) {
        ++node.received[message.which()];
        REQUIRE(node.service->on_message(number, message));
      },
      [](const std::string&) {});
  return attached;
}

// ---- WorkerProcess ------------------------------------------------------------------------------

WorkerProcess::WorkerProcess(TestNode& node, ProcessId number, JobId job, Body body)
    : node_(node), number_(number) {
  auto [ours, theirs] = socket_pair();
  auto [line, their_line] = make_pair_of(SOCK_SEQPACKET);
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    ours.reset();
    line.reset();
    be_worker(number, std::move(theirs), their_line.get(), body);
  }
  const auto attached = attach(node, number, job, std::move(ours));
  link_ = attached.link;
  line_ = std::move(line);
  send_descriptor(line_.get(), attached.arena);
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) kill();
}

std::string WorkerProcess::hear() {
  pollfd line{line_.get(), POLLIN, 0};
  node_.run_until(fmt::format("a word of process {}", number_),
                  [&] { return ::poll(&line, 1, 0) > 0; });
  return read_word(line_.get());
}

void WorkerProcess::tell(const std::string& word) { write_word(line_.get(), word); }

int WorkerProcess::join() {
  int status = 0;
  node_.run_until(fmt::format("the end of process {}", number_),
                  [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
  pid_ = 0;
  link_->close();
  node_.service->detach(number_);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void WorkerProcess::kill() {
  ::kill(pid_, SIGKILL);
  join();
}

// ---- Worker -------------------------------------------------------------------------------------

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

bool is_filled(std::span<const std::byte> bytes, std::uint64_t size, char fill) {
  return bytes.size() == size && std::ranges::all_of(bytes, [fill](std::byte byte) {
           return byte == static_cast<std::byte>(fill);
         });
}

void Worker::tell(const std::string& word) const { write_word(line, word); }
std::string Worker::hear() const { return read_word(line); }

Writable Worker::create(std::uint64_t bytes, ProcessId owner) const {
  auto made = client.create(bytes, owner ? owner : self);
  if (const auto* refusal = std::get_if<Refusal>(&made)) throw std::runtime_error(refusal->message);
  return std::move(std::get<Writable>(made));
}

ObjectId Worker::put(std::uint64_t bytes, char fill, ProcessId owner) const {
  auto writable = create(bytes, owner);
  std::ranges::fill(writable.bytes(), static_cast<std::byte>(fill));
  return std::move(writable).seal();
}

ViewPtr Worker::view(ObjectId object) const {
  auto view = client.view(object);
  if (const auto* refusal = std::get_if<Refusal>(&view)) throw std::runtime_error(refusal->message);
  return std::get<ViewPtr>(view);
}

Refusal Worker::refused_create(std::uint64_t bytes) const {
  auto made = client.create(bytes, self);
  require(std::holds_alternative<Refusal>(made), fmt::format("a create of {} is refused", bytes));
  return std::get<Refusal>(made);
}

Refusal Worker::refused_view(ObjectId object) const {
  auto view = client.view(object);
  require(std::holds_alternative<Refusal>(view), "the view is refused");
  return std::get<Refusal>(view);
}

// ---- LocalClient --------------------------------------------------------------------------------

LocalClient::LocalClient(int arena, ProcessId self, os::UniqueFd socket)
    : link_(connect(loop_, std::move(socket))) {
  auto mapping = Mapping::map(arena);
  require(std::holds_alternative<Mapping>(mapping), "the arena can be mapped");
  client_ = std::make_unique<Client>(
      loop_, self, std::move(std::get<Mapping>(mapping)),
      [this](transport::Outgoing&& message) { link_->send(std::move(message)); });
  link_->start([this](wire::Message::Reader message) { client_->on_message(message); },
               [this](const std::string& why) { client_->closed(why); });
  thread_ = std::thread([this] { loop_.run(); });
}

LocalClient::~LocalClient() {
  work_.reset();
  loop_.stop();
  thread_.join();
  client_.reset();
  link_->close();
}

}  // namespace troupe::store::test
