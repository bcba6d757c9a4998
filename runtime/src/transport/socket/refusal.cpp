#include "transport/socket/refusal.hpp"

#include <array>

#include <fmt/format.h>

#include "transport/frame.hpp"

namespace troupe::transport {
namespace {

std::string range(std::uint16_t min, std::uint16_t max, std::string_view version) {
  return fmt::format("{} to {} (troupe {})", min, max, version);
}

constexpr std::string_view kCopyToken =
    "copy the head's token file to the caller's machine (mode 0600) and name it with --token-file, "
    "or set TROUPE_TOKEN there";
constexpr std::string_view kOtherLife =
    "one of the two processes belongs to another cluster or to an earlier job; start the program "
    "again";

}  // namespace

Mismatch protocol_mismatch(const Transcript& t, std::string_view server_version,
                           std::string_view caller_version) {
  return {.reason = "protocol",
          .of_server = range(t.server_min, t.server_max, server_version),
          .of_caller = range(t.caller_min, t.caller_max, caller_version),
          .text = "install the same version on both"};
}

Mismatch cluster_mismatch(const Transcript& t) {
  return {.reason = "cluster",
          .of_server = fit(t.cluster),
          .of_caller = fit(t.caller.cluster),
          .text = "use the address of the cluster that is meant, or start the caller anew"};
}

Mismatch key_mismatch(wire::Role role, std::string_view of_server, std::string_view of_caller) {
  const bool process = role == wire::Role::PROCESS;
  return {.reason = process ? "key" : "token",
          .of_server = std::string(of_server),
          .of_caller = std::string(of_caller),
          .text = std::string(process ? kOtherLife : kCopyToken)};
}

std::string describe(const Mismatch& m, Side reader, const std::string& other) {
  const bool at_server = reader == Side::Server;
  const auto server = at_server ? "this side" : other;
  const auto caller = at_server ? "the caller " + other : "this side";
  if (m.reason == "protocol") {
    return fmt::format("{} speaks protocol {}, {} {}: {}", server, m.of_server, caller, m.of_caller,
                       m.text);
  }
  if (m.reason == "cluster") {
    return fmt::format("the cluster differs: {} belongs to '{}', {} looks for '{}': {}", server,
                       m.of_server, caller, m.of_caller, m.text);
  }
  if (m.reason == "token" || m.reason == "key") {
    return fmt::format("the {} differs: {} has the one with fingerprint {}, {} the one with {}: {}",
                       m.reason == "token" ? "token" : "job's key", server, m.of_server, caller,
                       m.of_caller, m.text);
  }
  return at_server ? fmt::format("{} was refused: {}", caller, m.text)
                   : fmt::format("{} refuses: {}", server, m.text);
}

void write(wire::Refusal::Builder to, const Mismatch& m, Side sender) {
  to.setReason(m.reason);
  to.setMine(sender == Side::Server ? m.of_server : m.of_caller);
  to.setYours(sender == Side::Server ? m.of_caller : m.of_server);
  to.setText(m.text);
}

Mismatch read(wire::Refusal::Reader from, Side sender) {
  const auto mine = fit(from.getMine());
  const auto yours = fit(from.getYours());
  return {.reason = fit(from.getReason()),
          .of_server = sender == Side::Server ? mine : yours,
          .of_caller = sender == Side::Server ? yours : mine,
          .text = fit(from.getText())};
}

std::string_view name_of(wire::Role role) {
  constexpr std::array<std::string_view, 5> kNames{"node", "driver", "admin", "process", "head"};
  const auto index = static_cast<std::size_t>(role);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string fit(capnp::Text::Reader text) { return printable({text.begin(), text.size()}, 1000); }

}  // namespace troupe::transport
