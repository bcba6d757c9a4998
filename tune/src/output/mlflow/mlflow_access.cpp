#include "output/mlflow/mlflow_access.hpp"

#include <cstdlib>
#include <filesystem>
#include <locale>
#include <stdexcept>

#include <fmt/format.h>
#include <boost/algorithm/string/predicate.hpp>

namespace troupe::tune {
namespace {

constexpr auto* kInsecure = "MLFLOW_TRACKING_INSECURE_TLS";
constexpr auto* kAuthorities = "MLFLOW_TRACKING_SERVER_CERT_PATH";
constexpr auto* kClientCertificate = "MLFLOW_TRACKING_CLIENT_CERT_PATH";

std::string environment(const char* name) {
  const auto* value = std::getenv(name);
  return value ? value : "";
}

bool is_true(const char* name) {
  const auto value = environment(name);
  const auto is = [&value](const char* word) {
    return boost::algorithm::iequals(value, word, std::locale::classic());
  };
  if (is("true") || is("1")) return true;
  if (is("") || is("false") || is("0")) return false;
  throw std::invalid_argument(
      fmt::format("tune: .mlflow: {} is '{}'; set it to true or false", name, value));
}

std::string path_in(const char* name) {
  const auto path = environment(name);
  std::error_code error;
  if (path.empty() || std::filesystem::exists(path, error)) return path;
  throw std::invalid_argument(fmt::format(
      "tune: .mlflow: {} is '{}', where there is no file; name one that is there, or unset it",
      name, path));
}

}  // namespace

MlflowAccess MlflowAccess::from_environment() {
  MlflowAccess access{.authorities = path_in(kAuthorities),
                      .client_certificate = path_in(kClientCertificate),
                      .is_verified = !is_true(kInsecure)};
  if (!access.is_verified && !access.authorities.empty())
    throw std::invalid_argument(
        fmt::format("tune: .mlflow: {} turns the verification off for which {} names the "
                    "authorities; unset one of them",
                    kInsecure, kAuthorities));
  const auto user = environment("MLFLOW_TRACKING_USERNAME");
  const auto password = environment("MLFLOW_TRACKING_PASSWORD");
  if (user.empty() || password.empty()) {
    access.token = environment("MLFLOW_TRACKING_TOKEN");
  } else {
    access.user = user;
    access.password = password;
  }
  return access;
}

}  // namespace troupe::tune
