#include "output/mlflow/server_url.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

constexpr std::string_view kPlain = "http://", kTls = "https://";

}  // namespace

ServerUrl ServerUrl::parse(std::string_view url) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("tune: .mlflow.url is '{}': {}", url, why));
  };
  const bool is_tls = url.starts_with(kTls);
  if (!is_tls && !url.starts_with(kPlain)) refuse("it has to begin with http:// or https://");
  if (url.find_first_of("?# ") != std::string_view::npos)
    refuse("it ends with a path; no query, fragment or space can be in it");
  const auto rest = url.substr(is_tls ? kTls.size() : kPlain.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  auto authority = rest.substr(0, slash);
  ServerUrl server{.is_tls = is_tls, .prefix = std::string(rest.substr(slash))};
  while (server.prefix.ends_with('/')) server.prefix.pop_back();
  if (authority.find('@') != std::string_view::npos)
    refuse(
        "a user and a password are taken from MLFLOW_TRACKING_USERNAME and "
        "MLFLOW_TRACKING_PASSWORD");
  const auto bracket = authority.starts_with('[') ? authority.find(']') : std::string_view::npos;
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  server.host = authority.substr(0, std::min(colon, authority.size()));
  server.port =
      colon == std::string_view::npos ? (is_tls ? "443" : "80") : authority.substr(colon + 1);
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

std::string ServerUrl::url_of(const std::string& path) const {
  return fmt::format("{}{}{}{}", is_tls ? kTls : kPlain, authority(), prefix, path);
}

bool ServerUrl::is_local() const {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

}  // namespace troupe::tune
