#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <string>

#include "output/mlflow/mlflow_access.hpp"
#include "output/mlflow/server_url.hpp"

namespace troupe::tune {

struct Libcurl;

struct HttpAnswer {
  unsigned status = 0;        ///< 0: there is no answer
  std::string body = {};      ///< 1 MiB at most
  std::string location = {};  ///< to which the answer points; empty: to none
  std::string error = {};     ///< why there is no answer, and what can be done where that is known
};

/// Requests to one HTTP server by libcurl, over connections that are kept between requests.
/// Belongs to one thread, on which all of it happens: nothing here waits but wait(). libcurl makes a
/// thread to look up a host that is given by name, and leaves a thread behind that still looks it up
/// when nobody waits for it any more; such a thread ends when the machine's resolver is done.
///
/// Redirects are not followed. A proxy is used as the environment says (https_proxy, http_proxy,
/// all_proxy, no_proxy), but not to a server on this machine.
class HttpClient {
 public:
  using Answered = std::function<void(const HttpAnswer& answer)>;

  /// Throws std::runtime_error where libcurl cannot be loaded.
  HttpClient(ServerUrl server, MlflowAccess access);
  /// Gives up what is on its way.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Requests that are not answered.
  std::size_t in_flight() const { return requests_.size(); }
  /// A GET without a body, a POST of JSON with one. Has `time` for all from the connection to the
  /// end of the answer. advance() calls `answered`, which may send the next request.
  void send(const std::string& path, std::string body, std::chrono::milliseconds time,
            Answered answered);
  /// Takes the requests as far as they go without waiting.
  void advance();
  /// Until one of them can go on or is answered, for `time` at most.
  void wait(std::chrono::milliseconds time);

 private:
  struct Request;

  void set_options(Request& request, std::chrono::milliseconds time) const;
  void set_tls_options(const Request& request) const;
  void set_credentials(const Request& request) const;
  void perform();

  const Libcurl& curl_;
  const ServerUrl server_;
  const MlflowAccess access_;
  void* const multi_;  // libcurl's, of all requests and connections
  std::list<Request> requests_;
  int running_ = 0;  // of requests_; the others have ended, and advance() says so
};

}  // namespace troupe::tune
