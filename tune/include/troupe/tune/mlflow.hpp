#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace troupe::tune {

/// An MLflow server that is told of a search, over its REST API 2.0:
///
///   .mlflow = {.url = "http://127.0.0.1:5000", .experiment = "digits"}
///
/// Who asks is read from the environment, as MLflow's own client does:
/// MLFLOW_TRACKING_USERNAME with MLFLOW_TRACKING_PASSWORD, or else MLFLOW_TRACKING_TOKEN.
struct Mlflow {
  std::string url = {};  ///< "http://HOST:PORT/PREFIX", without TLS; empty: none is told
  std::string experiment = "Default";  ///< is made where there is none of this name
  std::string run_name = {};           ///< of the search; empty: its folder's
  /// At the end of the search, for what the server has not taken yet. Nothing waits for it before.
  std::chrono::milliseconds deadline{10'000};
  /// Values of metrics that wait in memory, some 100 bytes each, while the server is away or slow.
  /// The oldest are dropped for newer ones, and counted.
  std::size_t most_waiting = 500'000;
};

}  // namespace troupe::tune
