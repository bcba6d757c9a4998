#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace troupe::tune {

/// An MLflow server to which a search is reported, over its REST API 2.0:
///
///   .mlflow = {.url = "http://127.0.0.1:5000", .experiment = "digits"}
///
/// Credentials are read from the environment, as by MLflow's own client:
/// MLFLOW_TRACKING_USERNAME with MLFLOW_TRACKING_PASSWORD, or else MLFLOW_TRACKING_TOKEN. With https
/// the server's certificate is verified against the system's authorities, or those of
/// MLFLOW_TRACKING_SERVER_CERT_PATH, unless MLFLOW_TRACKING_INSECURE_TLS is true;
/// MLFLOW_TRACKING_CLIENT_CERT_PATH names a certificate of the driver. The driver needs libcurl
/// 7.87, Debian's libcurl4, without which a search with a URL throws std::runtime_error.
struct Mlflow {
  std::string url = {};  ///< "http://HOST:PORT/PREFIX", or with https://; empty: none is told
  std::string experiment = "Default";  ///< is made where there is none of this name
  std::string run_name = {};           ///< of the search; empty: its folder's
  /// How long the end of the search waits for what the server has not received yet. Nothing waits
  /// for the server before.
  std::chrono::milliseconds deadline{10'000};
  /// How many values of metrics may wait in memory, some 100 bytes each, while the server is away
  /// or slow. Beyond that the oldest are dropped and counted.
  std::size_t most_waiting = 500'000;
  /// How long the first requests are sent again that are answered with 404 or pointed elsewhere
  /// (3xx), as by a proxy whose server is just starting. After that, nothing more is sent.
  std::chrono::milliseconds patience{30'000};
};

}  // namespace troupe::tune
