#include <string>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "host/rendezvous_server.hpp"
#include "host/rendezvous_store.hpp"

using namespace troupe::launch;

namespace {

namespace asio = boost::asio;

asio::ip::tcp::socket connection_to(asio::io_context& io, const RendezvousServer& server) {
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), server.port()});
  return socket;
}

/// Sends these bytes on a connection of their own. -> all that comes until the server closes it.
std::string answer(const RendezvousServer& server, const std::string& request) {
  asio::io_context io;
  auto socket = connection_to(io, server);
  asio::write(socket, asio::buffer(request));
  std::string all;
  boost::system::error_code end;
  asio::read(socket, asio::dynamic_buffer(all), end);
  CHECK(end == asio::error::eof);
  return all;
}

std::string put(const std::string& path, const std::string& value) {
  return "PUT " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(value.size()) +
         "\r\n\r\n" + value;
}

std::string without_body(const std::string& method, const std::string& path) {
  return method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

std::string value_of(const RendezvousServer& server, const std::string& path) {
  const auto all = answer(server, without_body("GET", path));
  if (!all.starts_with("HTTP/1.1 200 ")) return "none: " + all.substr(0, all.find('\r'));
  CHECK(all.find("Content-Length: ") != std::string::npos);  // as Horovod's client writes it
  return all.substr(all.find("\r\n\r\n") + 4);
}

}  // namespace

TEST_CASE("a key has the value that was put last, in its scope alone (1)", "[launch][rendezvous]") {
  RendezvousStore store(10'000);
  CHECK(store.get("global", "0") == nullptr);
  CHECK(store.put("global", "0", "a"));
  CHECK(store.put("local", "0", "b"));
  CHECK(store.put("global", "0", "c"));
  CHECK(*store.get("global", "0") == "c");
  CHECK(*store.get("local", "0") == "b");
  CHECK(store.get("global", "1") == nullptr);
}

TEST_CASE("a scope is empty again once each of its keys was finished (2)", "[launch][rendezvous]") {
  RendezvousStore store(10'000);
  store.put("global", "0", "a");
  store.put("global", "1", "b");
  store.put("other", "0", "c");
  store.finish("global", "0");
  store.finish("global", "0");  // twice is once
  store.finish("global", "7");
  store.finish("nowhere", "0");
  CHECK(*store.get("global", "0") == "a");
  store.put("global", "0", "new");  // and so is not finished
  store.finish("global", "1");
  CHECK(*store.get("global", "1") == "b");
  store.finish("global", "0");
  CHECK(store.get("global", "0") == nullptr);
  CHECK(store.get("global", "1") == nullptr);
  CHECK(*store.get("other", "0") == "c");
  store.finish("other", "0");
  CHECK(store.used() == 0);
}

TEST_CASE("what does not fit changes nothing, and what is replaced or finished makes room (3)",
          "[launch][rendezvous]") {
  constexpr std::size_t room = 2 * (RendezvousStore::kPerKey + 2 + 10);
  RendezvousStore store(room);
  const std::string ten(10, 'x');
  CHECK(store.put("s", "0", ten));
  CHECK(store.put("s", "1", ten));
  CHECK(store.used() == room);
  CHECK_FALSE(store.put("s", "2", ""));
  CHECK_FALSE(store.put("s", "1", ten + "x"));
  CHECK(*store.get("s", "1") == ten);
  CHECK(store.put("s", "1", "short"));
  CHECK(store.put("s", "0", ten + "xxxxx"));
  store.finish("s", "0");
  store.finish("s", "1");
  CHECK(store.used() == 0);
  CHECK(store.put("s", "2", ten));
}

TEST_CASE("values of any bytes are put, got and finished over HTTP", "[launch][rendezvous]") {
  const auto server = RendezvousServer::listen("127.0.0.1");
  REQUIRE(server);
  const std::string bytes{"a\0\r\n\r\nb\xff", 8};
  CHECK(value_of(*server, "/global/0") == "none: HTTP/1.1 404 Not Found");
  CHECK(answer(*server, put("/global/0", bytes)).starts_with("HTTP/1.1 200 "));
  CHECK(answer(*server, put("/global/1", "")).starts_with("HTTP/1.1 200 "));
  CHECK(value_of(*server, "/global/0") == bytes);
  CHECK(value_of(*server, "/global/1").empty());
  for (const auto* key : {"/global/0", "/global/1"})
    CHECK(answer(*server, without_body("DELETE", key)).starts_with("HTTP/1.1 200 "));
  CHECK(value_of(*server, "/global/0") == "none: HTTP/1.1 404 Not Found");
}

TEST_CASE("requests that make no sense, or are too large, are answered and harm nobody",
          "[launch][rendezvous]") {
  const auto server = RendezvousServer::listen("127.0.0.1");
  REQUIRE(server);
  CHECK(answer(*server, put("/global/0", "kept")).starts_with("HTTP/1.1 200 "));
  CHECK(answer(*server, put("/global", "x")).starts_with("HTTP/1.1 400 "));
  CHECK(answer(*server, without_body("POST", "/global/0")).starts_with("HTTP/1.1 405 "));
  const auto much = std::to_string(RendezvousServer::kMostValue + 1);
  CHECK(answer(*server, "PUT /a/b HTTP/1.1\r\nContent-Length: " + much + "\r\n\r\n")
            .starts_with("HTTP/1.1 413 "));
  CHECK(answer(*server, "\x16\x03\x01 no HTTP\r\n\r\n").empty());
  CHECK(value_of(*server, "/global/0") == "kept");
}

TEST_CASE("connections that say nothing leave room for others and end with the server",
          "[launch][rendezvous]") {
  auto server = RendezvousServer::listen("127.0.0.1");
  REQUIRE(server);
  asio::io_context io;
  std::vector<asio::ip::tcp::socket> silent;
  for (int count = 0; count < 63; ++count) silent.push_back(connection_to(io, *server));
  CHECK(answer(*server, put("/global/0", "x")).starts_with("HTTP/1.1 200 "));
  silent.push_back(connection_to(io, *server));  // the 64th
  auto late = connection_to(io, *server);
  asio::write(late, asio::buffer(without_body("GET", "/global/0")));
  silent.front().close();  // now the late one has a place
  std::string all;
  boost::system::error_code end;
  asio::read(late, asio::dynamic_buffer(all), end);
  CHECK(all.starts_with("HTTP/1.1 200 "));
  server.reset();
  for (std::size_t each = 1; each < silent.size(); ++each) {
    char byte = 0;
    silent[each].read_some(asio::buffer(&byte, 1), end);
    CHECK(end);
  }
}

TEST_CASE("a rendezvous is served at addresses of this machine in digits alone",
          "[launch][rendezvous]") {
  CHECK(RendezvousServer::listen("127.0.0.1"));
  CHECK_FALSE(RendezvousServer::listen("192.0.2.1"));
  CHECK_FALSE(RendezvousServer::listen("::1"));
  CHECK_FALSE(RendezvousServer::listen("localhost"));
  CHECK_FALSE(RendezvousServer::listen(""));
}
