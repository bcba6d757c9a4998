#include "transport/socket/resolve.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include <netdb.h>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

namespace troupe::transport {
namespace {

/// The answer of the look-up thread, as one write of at most this many addresses.
constexpr std::size_t kMostAddresses = 16;
struct Answer {
  std::array<SocketAddress, kMostAddresses> addresses;
  std::size_t count = 0;
  std::array<char, 128> error{};
};
static_assert(std::is_trivially_copyable_v<Answer>);

void look_up_and_send(const std::string& host, std::uint16_t port, const OwnedFd& to) {
  Answer answer;
  std::string error;
  const auto found = look_up(host, port, false, error);
  for (const auto& address : found) {
    if (answer.count < kMostAddresses) answer.addresses[answer.count++] = address;
  }
  error.copy(answer.error.data(), answer.error.size() - 1);
  // Fits the socket's buffer, so it is written whole, or nobody listens any more.
  (void)!::send(to.get(), &answer, sizeof(answer), MSG_NOSIGNAL);
}

}  // namespace

std::vector<SocketAddress> look_up(const std::string& host, std::uint16_t port, bool numbers_only,
                                   std::string& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numbers_only ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (failed != 0) {
    error = failed == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(failed);
    return {};
  }
  std::vector<SocketAddress> found;
  for (auto* entry = list; entry; entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    found.push_back(address);
  }
  ::freeaddrinfo(list);
  return found;
}

struct Resolver::Pending {
  explicit Pending(asio::io_context& loop) : answer(loop) {}
  asio::local::stream_protocol::socket answer;
  Done done;
};

Resolver::Resolver(asio::io_context& loop) : loop_(loop) {}
Resolver::~Resolver() = default;

void Resolver::start(const std::string& host, std::uint16_t port, Done done) {
  pending_ = std::make_shared<Pending>(loop_);
  pending_->done = std::move(done);
  const auto answer_with = [&](std::vector<SocketAddress> found, std::string error) {
    asio::post(loop_, [weak = std::weak_ptr(pending_), found = std::move(found),
                       error = std::move(error)] {
      if (const auto alive = weak.lock()) std::exchange(alive->done, {})(found, error);
    });
  };
  std::string error;
  if (auto numbers = look_up(host, port, true, error); !numbers.empty())
    return answer_with(std::move(numbers), "");

  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return answer_with({}, std::generic_category().message(errno));
  }
  pending_->answer.assign(asio::local::stream_protocol(), ends[0]);
  try {
    std::thread([host, port, to = OwnedFd(ends[1])] { look_up_and_send(host, port, to); }).detach();
  } catch (const std::system_error& no_thread) {
    return answer_with({}, no_thread.what());
  }
  pending_->answer.async_wait(
      asio::socket_base::wait_read, [weak = std::weak_ptr(pending_)](auto stopped) {
        const auto alive = weak.lock();
        if (!alive || stopped) return;
        Answer answer;
        const bool whole =
            ::recv(alive->answer.native_handle(), &answer, sizeof(answer), 0) == sizeof(answer);
        std::vector<SocketAddress> found;
        if (whole) found.assign(answer.addresses.begin(), answer.addresses.begin() + answer.count);
        std::exchange(alive->done, {})(std::move(found),
                                       whole ? answer.error.data() : "the look-up broke off");
      });
}

}  // namespace troupe::transport
