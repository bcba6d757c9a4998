#include "transport/find_token.hpp"

#include <chrono>
#include <memory>
#include <optional>

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
      raise({.kind = Failure::Kind::Disconnected, .message = *why});
    throw;
  }
}

}  // namespace troupe::transport
