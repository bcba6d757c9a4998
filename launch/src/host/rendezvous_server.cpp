#include "host/rendezvous_server.hpp"

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "host/rendezvous_store.hpp"

namespace troupe::launch {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
namespace {

constexpr std::size_t kMostConnections = 64;
constexpr std::chrono::seconds kOneRequest{10};
constexpr std::chrono::milliseconds kAfterFailure{100};
constexpr unsigned kHttp11 = 11;

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

struct Place {
  std::string scope;
  std::string key;
};

/// Of "/scope/key".
std::optional<Place> place_of(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  target.remove_prefix(1);
  const auto slash = target.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return Place{std::string(target.substr(0, slash)), std::string(target.substr(slash + 1))};
}

Response answer_to(const Request& request, RendezvousStore& store) {
  Response response(http::status::ok, kHttp11);
  const auto place = place_of({request.target().data(), request.target().size()});
  if (!place) {
    response.result(http::status::bad_request);
  } else if (request.method() == http::verb::put) {
    if (!store.put(place->scope, place->key, request.body()))
      response.result(http::status::insufficient_storage);
  } else if (request.method() == http::verb::get) {
    if (const auto* value = store.get(place->scope, place->key)) {
      response.body() = *value;
    } else {
      response.result(http::status::not_found);
    }
  } else if (request.method() == http::verb::delete_) {
    store.finish(place->scope, place->key);
  } else {
    response.result(http::status::method_not_allowed);
  }
  return response;
}

}  // namespace

struct RendezvousServer::Impl {
  class Connection;

  ~Impl() {
    loop.stop();
    if (thread.joinable()) thread.join();
    is_leaving = true;  // connections that are left go with the loop
  }

  void start() {
    // Signals are for the thread that called.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread = std::thread([this] { loop.run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void accept();
  void on_closed() {
    --connections;
    if (!is_accepting && !is_leaving) accept();
  }

  std::uint16_t port = 0;
  RendezvousStore store{kRoom};
  std::size_t connections = 0;
  bool is_accepting = false;
  bool is_leaving = false;
  asio::io_context loop{1};  // after what its connections use as they end
  tcp::acceptor acceptor{loop};
  asio::steady_timer pause{loop};
  std::thread thread;
};

/// One request and its answer. Lives as long as an operation of its own is under way.
class RendezvousServer::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Impl& server, tcp::socket socket) : server_(server), stream_(std::move(socket)) {
    parser_.body_limit(kMostValue);
    ++server_.connections;
  }
  ~Connection() { server_.on_closed(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read() {
    stream_.expires_after(kOneRequest);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (error == http::error::body_limit)
                         return self->write({http::status::payload_too_large, kHttp11});
                       if (!error) self->write(answer_to(self->parser_.get(), self->server_.store));
                     });
  }

 private:
  void write(Response response) {
    response_ = std::move(response);
    response_.keep_alive(false);
    response_.prepare_payload();
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code, std::size_t) {
                        beast::error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  Impl& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  Response response_;
};

void RendezvousServer::Impl::accept() {
  is_accepting = connections < kMostConnections;
  if (!is_accepting) return;
  acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
    if (error) {  // no descriptor is free, say
      pause.expires_after(kAfterFailure);
      return pause.async_wait([this](beast::error_code) { accept(); });
    }
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    std::make_shared<Connection>(*this, std::move(socket))->read();
    accept();
  });
}

RendezvousServer::RendezvousServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RendezvousServer::~RendezvousServer() = default;

std::unique_ptr<RendezvousServer> RendezvousServer::listen(const std::string& address) {
  beast::error_code error;
  const auto where = asio::ip::make_address_v4(address, error);
  if (error) return nullptr;
  auto impl = std::make_unique<Impl>();
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return nullptr;
  impl->acceptor.assign(tcp::v4(), socket, error);
  if (!error) impl->acceptor.bind({where, 0}, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) impl->port = impl->acceptor.local_endpoint(error).port();
  if (error) return nullptr;
  impl->accept();
  impl->start();
  return std::unique_ptr<RendezvousServer>(new RendezvousServer(std::move(impl)));
}

std::uint16_t RendezvousServer::port() const { return impl_->port; }

}  // namespace troupe::launch
