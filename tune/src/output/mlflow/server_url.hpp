#pragma once

#include <string>
#include <string_view>

namespace troupe::tune {

/// Where an HTTP server is.
struct ServerUrl {
  std::string host = {};
  std::string port = {};
  std::string prefix = {};  ///< before each path; empty, or begins with a slash and ends without

  /// "http://HOST[:PORT][/PREFIX]". Throws std::invalid_argument, saying what is wrong.
  static ServerUrl parse(std::string_view url);
  /// As the Host field of a request has it: an IPv6 address in brackets.
  std::string authority() const;
};

/// The Authorization field for an MLflow server, from the environment as MLflow's own client does;
/// empty: there is none.
std::string mlflow_authorization();

}  // namespace troupe::tune
