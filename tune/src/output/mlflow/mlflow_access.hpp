#pragma once

#include <string>

namespace troupe::tune {

/// Who asks an MLflow server, and how the server's certificate is verified. A value.
struct MlflowAccess {
  std::string user = {}, password = {};
  std::string token = {};               ///< instead of these two; empty: none
  std::string authorities = {};         ///< file or folder of PEM; empty: the system's authorities
  std::string client_certificate = {};  ///< file of PEM, with its key; empty: none
  bool is_verified = true;              ///< the server's certificate, with the name in it

  /// What MLFLOW_TRACKING_USERNAME, _PASSWORD, _TOKEN, _SERVER_CERT_PATH, _CLIENT_CERT_PATH and
  /// _INSECURE_TLS say, as MLflow's own client reads them. Throws std::invalid_argument, which names
  /// the variable, where one of the last three cannot be.
  static MlflowAccess from_environment();
};

}  // namespace troupe::tune
