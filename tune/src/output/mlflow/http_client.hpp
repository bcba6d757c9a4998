#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "output/mlflow/server_url.hpp"

namespace troupe::tune {

struct HttpAnswer {
  unsigned status = 0;        ///< 0: there is no answer
  std::string body = {};      ///< 1 MiB at most
  std::string location = {};  ///< to which the answer points; empty: to none
  std::string error = {};     ///< why there is no answer
};

/// One connection to an HTTP server, kept between requests, with one request at a time. Belongs to
/// the loop of `io`, which its owner polls: nothing here waits. A host that is named by its number
/// needs no thread; a name is looked up on the one thread that asio makes for that.
class HttpClient {
 public:
  using Answered = std::function<void(const HttpAnswer& answer)>;

  /// `authorization`: the field of that name in each request; empty: none. `io` outlives the client
  /// and is not polled after it.
  HttpClient(boost::asio::io_context& io, const ServerUrl& server, std::string authorization);

  bool is_busy() const { return static_cast<bool>(answered_); }
  /// A GET without a body, a POST of JSON with one. Not while it is busy. Has `time` for all from
  /// the connection to the end of the answer. `answered` may send the next request.
  void send(const std::string& path, const std::string& body, std::chrono::milliseconds time,
            Answered answered);

 private:
  using Error = boost::beast::error_code;
  using Endpoints = boost::asio::ip::tcp::resolver::results_type;

  void begin();
  void look_up();
  void connect(const Endpoints& endpoints);
  void write();
  void read();
  void finish();
  void fail(Error error);

  const ServerUrl& server_;
  const std::string authorization_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  std::optional<boost::beast::http::response_parser<boost::beast::http::string_body>> parser_;
  std::chrono::steady_clock::time_point deadline_;
  bool is_kept_ = false;  // the connection, from the request before
  Answered answered_;     // while it is busy
};

}  // namespace troupe::tune
