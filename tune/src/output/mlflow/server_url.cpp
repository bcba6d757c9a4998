#include "output/mlflow/server_url.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace troupe::tune {
namespace {

constexpr std::string_view kScheme = "http://";

std::string environment(const char* name) {
  const auto* value = std::getenv(name);
  return value ? value : "";
}

std::string base64(const std::string& text) {
  std::string encoded((text.size() + 2) / 3 * 4 + 1, '\0');
  const auto size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()));
  encoded.resize(static_cast<std::size_t>(size));
  return encoded;
}

}  // namespace

ServerUrl ServerUrl::parse(std::string_view url) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("tune: .mlflow.url is '{}': {}", url, why));
  };
  if (url.starts_with("https://"))
    refuse("TLS is not spoken; name a server, or a proxy on this machine, by http://");
  if (!url.starts_with(kScheme)) refuse("it has to begin with http://");
  const auto rest = url.substr(kScheme.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  auto authority = rest.substr(0, slash);
  ServerUrl server{.prefix = std::string(rest.substr(slash))};
  while (server.prefix.ends_with('/')) server.prefix.pop_back();
  if (authority.find('@') != std::string_view::npos)
    refuse(
        "a user and a password are taken from MLFLOW_TRACKING_USERNAME and "
        "MLFLOW_TRACKING_PASSWORD");
  const auto bracket = authority.starts_with('[') ? authority.find(']') : std::string_view::npos;
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  server.host = authority.substr(0, std::min(colon, authority.size()));
  server.port = colon == std::string_view::npos ? "80" : authority.substr(colon + 1);
  if (bracket != std::string_view::npos) server.host = authority.substr(1, bracket - 1);
  if (server.host.empty()) refuse("it names no host");
  const bool is_port =
      !server.port.empty() && server.port.size() <= 5 &&
      std::ranges::all_of(server.port, [](char c) { return '0' <= c && c <= '9'; }) &&
      std::stoul(server.port) <= 65535;
  if (!is_port) refuse(fmt::format("'{}' is no port", server.port));
  return server;
}

std::string ServerUrl::authority() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string mlflow_authorization() {
  const auto user = environment("MLFLOW_TRACKING_USERNAME");
  const auto password = environment("MLFLOW_TRACKING_PASSWORD");
  if (!user.empty() && !password.empty()) return "Basic " + base64(user + ":" + password);
  const auto token = environment("MLFLOW_TRACKING_TOKEN");
  return token.empty() ? "" : "Bearer " + token;
}

}  // namespace troupe::tune
