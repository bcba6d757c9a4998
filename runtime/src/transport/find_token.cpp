#include "transport/find_token.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "transport/silence_timer.hpp"
#include "transport/socket/dial.hpp"

namespace troupe::transport {
namespace {

constexpr std::chrono::milliseconds kAnswer{900};

}  // namespace

std::optional<std::string> why_nobody_listens(const Endpoint& to) {
  asio::io_context loop{1};
  std::optional<std::string> why;
  bool connected = false;
  const auto dial = std::make_shared<Dial>(
      loop, to, "is the head running? start it with `troupe head`",
      [&](Socket) { connected = true; }, [&](DialFailure failed) { why = std::move(failed.why); });
  dial->start();
  run_until(loop, kAnswer, [&] { return connected || why; });
  return why;
}

config::FoundToken find_token(const Endpoint& to, const std::string& file) {
  try {
    return config::find_token(file);
  } catch (const Refused&) {
    if (const auto why = why_nobody_listens(to))
      raise({.kind = Failure::Kind::Disconnected, .message = *why + about_other_head(to)});
    throw;
  }
}

std::string about_other_head(const Endpoint& to) try {
  const auto known = config::known_head();
  if (to.host.empty() || known.empty()) return {};
  const auto other = parse_endpoint(known);
  const bool is_same_host = other.host == to.host || to.host == "localhost";
  if (is_same_host && other.port == to.port) return {};
  return fmt::format("; the head that was last started on this machine, by this user, is at {}",
                     name_of(other));
} catch (const std::exception&) {
  return {};  // no home directory is known, or the file holds no address
}

}  // namespace troupe::transport
