#pragma once

#include <chrono>
#include <string>

#include "guard.hpp"
#include "output/mlflow/http_client.hpp"

namespace troupe::tune {

/// Sends a request, and waits for its answer. As HttpClient::send().
inline HttpAnswer answer_to(HttpClient& client, const std::string& path = "/",
                            const std::string& body = "",
                            std::chrono::milliseconds time = test::kGuard) {
  HttpAnswer answer;
  client.send(path, body, time, [&](const HttpAnswer& got) { answer = got; });
  while (client.in_flight() > 0) {
    client.wait(test::kGuard);
    client.advance();
  }
  return answer;
}

/// The same, of a client that the environment gives its access.
inline HttpAnswer answer_of(const std::string& url, const std::string& path = "/") {
  HttpClient client(ServerUrl::parse(url), MlflowAccess::from_environment());
  return answer_to(client, path);
}

}  // namespace troupe::tune
