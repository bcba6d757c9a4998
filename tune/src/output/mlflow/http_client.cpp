#include "output/mlflow/http_client.hpp"

#include <cassert>
#include <cstddef>
#include <utility>

#include <fcntl.h>

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

namespace troupe::tune {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace {

constexpr std::uint64_t kMostBody = 1 << 20;
constexpr unsigned kHttp11 = 11;

}  // namespace

HttpClient::HttpClient(asio::io_context& io, const ServerUrl& server, std::string authorization)
    : server_{server}, authorization_{std::move(authorization)}, resolver_{io}, stream_{io} {}

void HttpClient::send(const std::string& path, const std::string& body,
                      std::chrono::milliseconds time, Answered answered) {
  assert(!is_busy());
  answered_ = std::move(answered);
  deadline_ = std::chrono::steady_clock::now() + time;
  request_ = {body.empty() ? http::verb::get : http::verb::post, server_.prefix + path, kHttp11};
  request_.set(http::field::host, server_.authority());
  request_.set(http::field::user_agent, "troupe");
  request_.set(http::field::accept, "application/json");
  if (!authorization_.empty()) request_.set(http::field::authorization, authorization_);
  if (!body.empty()) request_.set(http::field::content_type, "application/json");
  request_.body() = body;
  request_.prepare_payload();
  begin();
}

void HttpClient::begin() {
  stream_.expires_at(deadline_);
  if (is_kept_) return write();
  look_up();
}

void HttpClient::look_up() {
  Error is_name;
  const auto address = asio::ip::make_address(server_.host, is_name);
  if (!is_name) {
    const asio::ip::tcp::endpoint endpoint(
        address, static_cast<asio::ip::port_type>(std::stoul(server_.port)));
    return connect(Endpoints::create(endpoint, server_.host, server_.port));
  }
  resolver_.async_resolve(server_.host, server_.port, [this](Error error, const Endpoints& found) {
    if (error) return fail(error);
    connect(found);
  });
}

void HttpClient::connect(const Endpoints& endpoints) {
  stream_.async_connect(endpoints, [this](Error error, const auto&) {
    if (error) return fail(error);
    ::fcntl(stream_.socket().native_handle(), F_SETFD, FD_CLOEXEC);
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), error);
    write();
  });
}

void HttpClient::write() {
  parser_.reset();  // of the answer before
  http::async_write(stream_, request_, [this](Error error, std::size_t) {
    if (error) return fail(error);
    read();
  });
}

void HttpClient::read() {
  buffer_.clear();
  parser_.emplace();
  parser_->body_limit(kMostBody);
  http::async_read(stream_, buffer_, *parser_, [this](Error error, std::size_t) {
    if (error) return fail(error);
    finish();
  });
}

void HttpClient::finish() {
  is_kept_ = parser_->keep_alive();
  if (!is_kept_) stream_.close();
  stream_.expires_never();
  const HttpAnswer answer{.status = parser_->get().result_int(),
                          .body = std::move(parser_->get().body()),
                          .location = std::string(parser_->get()[http::field::location])};
  std::exchange(answered_, {})(answer);
}

/// A connection that the server has closed between two requests is made anew, once.
void HttpClient::fail(Error error) {
  const bool got_nothing = !parser_ || !parser_->got_some();
  const bool is_stale =
      std::exchange(is_kept_, false) && got_nothing && error != beast::error::timeout;
  stream_.close();
  if (is_stale) return begin();
  const auto why = error == beast::error::timeout ? "it does not answer in time" : error.message();
  std::exchange(answered_, {})({.error = why});
}

}  // namespace troupe::tune
