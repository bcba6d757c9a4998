#pragma once

#include <string>
#include <string_view>

namespace troupe::tune {

/// Where an HTTP server is.
struct ServerUrl {
  bool is_tls = false;
  std::string host = {};
  std::string port = {};
  std::string prefix = {};  ///< before each path; empty, or begins with a slash and ends without

  /// "http://HOST[:PORT][/PREFIX]", or the same with https. Throws std::invalid_argument, saying
  /// what is wrong.
  static ServerUrl parse(std::string_view url);
  /// As the Host field of a request has it: an IPv6 address in brackets.
  std::string authority() const;
  std::string url_of(const std::string& path) const;
  /// It names the machine that asks.
  bool is_local() const;
};

}  // namespace troupe::tune
