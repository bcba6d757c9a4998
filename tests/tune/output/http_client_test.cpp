// HttpClient beside servers that break off, answer too much, or not at all.
#include "output/mlflow/http_client.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <sys/socket.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/http_answer.hpp"
#include "support/mlflow_stub.hpp"

namespace http_client_test {

using namespace troupe::tune;
using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using troupe::test::kGuard;

namespace {

/// A server on a port of its own, which does with each connection what the test says.
class Server {
 public:
  using Serve = std::function<void(tcp::socket& socket)>;
  explicit Server(Serve serve) : serve_{std::move(serve)}, thread_{[this] { accept(); }} {}
  ~Server() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
  }
  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  void accept() {
    boost::system::error_code error;
    while (true) {
      tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (error) return;
      serve_(socket);
    }
  }

  Serve serve_;
  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;  // the last, since it uses the others
};

void read_request(tcp::socket& socket) {
  std::string request;
  boost::system::error_code error;
  boost::asio::read_until(socket, boost::asio::dynamic_buffer(request), "\r\n\r\n", error);
}

void write(tcp::socket& socket, const std::string& text) {
  boost::system::error_code error;  // the client may have gone
  boost::asio::write(socket, boost::asio::buffer(text), error);
}

}  // namespace

TEST_CASE("an answer of more than 1 MiB is not kept, and the next one is read",
          "[tune][mlflow][http]") {
  int served = 0;
  Server server([&](tcp::socket& socket) {
    read_request(socket);
    const std::string body(++served == 1 ? (1 << 20) + 1 : 1 << 20, 'x');
    write(socket, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\nConnection: close\r\n\r\n" + body);
  });
  HttpClient client(ServerUrl::parse("http://" + server.address()), {});
  const auto first = answer_to(client, "/", "{}"), second = answer_to(client, "/", "{}");
  CHECK(first.status == 0);
  CHECK(first.error == "its answer is longer than 1 MiB");
  CHECK(second.status == 200);
  CHECK(second.body.size() == 1 << 20);
}

TEST_CASE("a connection that ends in an answer or in TLS's greeting is an error",
          "[tune][mlflow][http]") {
  const std::string protocol = GENERATE("http", "https");
  Server server([](tcp::socket& socket) {
    read_request(socket);
    write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half");
  });
  Server silent([](tcp::socket& socket) {
    std::string byte(1, ' ');
    boost::system::error_code error;
    socket.read_some(boost::asio::buffer(byte), error);
  });
  const auto& address = protocol == "http" ? server.address() : silent.address();
  HttpClient client(ServerUrl::parse(protocol + "://" + address), {});
  for (int i = 0; i < 3; ++i) {
    const auto answer = answer_to(client, "/", "{}");
    CHECK(answer.status == 0);
    CHECK(answer.body.empty());
    CHECK_FALSE(answer.error.empty());
  }
}

TEST_CASE("a server that speaks no TLS is an error at https://", "[tune][mlflow][http]") {
  Server server([](tcp::socket& socket) {
    std::string greeting(4096, ' ');
    boost::system::error_code error;
    socket.read_some(boost::asio::buffer(greeting), error);
    write(socket, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  });
  HttpClient client(ServerUrl::parse("https://" + server.address()), {});
  const auto answer = answer_to(client, "/", "{}");
  CHECK(answer.status == 0);
  CHECK_THAT(answer.error, Catch::Contains("wrong version number"));
}

TEST_CASE("a request has its time, and one that waits goes with its client",
          "[tune][mlflow][http]") {
  MlflowStub server;
  server.hold(true);
  const auto started = std::chrono::steady_clock::now();
  {
    HttpClient client(ServerUrl::parse(server.url()), {});
    const auto answer = answer_to(client, "/", "{}", 50ms);
    CHECK(answer.error == "it does not answer in time");
    bool is_answered = false;
    client.send("/", "{}", kGuard, [&](const HttpAnswer&) { is_answered = true; });
    CHECK(client.in_flight() == 1);
    CHECK_FALSE(is_answered);
  }
  CHECK(std::chrono::steady_clock::now() - started < kGuard);
}

TEST_CASE("an answer that comes while its request is sent is not waited for",
          "[tune][mlflow][http]") {
  MlflowStub server;
  HttpClient client(ServerUrl::parse("http://localhost:" + std::to_string(server.port())), {});
  const auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) CHECK(answer_to(client, "/", "{}").status == 400);
  CHECK(std::chrono::steady_clock::now() - started < kGuard);
}

TEST_CASE("a connection that the server closed between two requests is made anew",
          "[tune][mlflow][http]") {
  MlflowStub server;
  HttpClient client(ServerUrl::parse("http://localhost:" + std::to_string(server.port())), {});
  CHECK(answer_to(client, "/", "{}").status == 400);
  CHECK(answer_to(client, "/", "{}").status == 400);
  CHECK(server.connections() == 1);
  server.close_connections();
  CHECK(answer_to(client, "/", "{}").status == 400);
  CHECK(server.requests() == 3);
  CHECK(server.connections() == 2);
}

}  // namespace http_client_test
