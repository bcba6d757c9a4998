#pragma once

#include <string>
#include <string_view>

#include "transport/handshake/proof.hpp"

namespace troupe::transport {

/// Why a handshake ends, with the values of both sides; it is the same on both, and each tells it
/// from its own view.
struct Mismatch {
  std::string reason = {};  // "protocol", "cluster", "token", "key"; else `text` says all
  std::string of_server = {};
  std::string of_caller = {};
  std::string text = {};  // what to do
};

Mismatch protocol_mismatch(const Transcript& transcript, std::string_view server_version,
                           std::string_view caller_version);
Mismatch cluster_mismatch(const Transcript& transcript);
/// `reason` token, or key where the caller is a process, which proves the key of its job.
Mismatch key_mismatch(wire::Role role, std::string_view of_server, std::string_view of_caller);

/// A message for a person at the side `reader`; `other` is the endpoint of the other side.
std::string describe(const Mismatch& mismatch, Side reader, const std::string& other);

/// As it crosses the wire, from the side `sender`.
void write(wire::Refusal::Builder to, const Mismatch& mismatch, Side sender);
Mismatch read(wire::Refusal::Reader from, Side sender);

std::string_view name_of(wire::Role role);
/// A peer's text, fit for a log: printable and short.
std::string fit(capnp::Text::Reader text);

}  // namespace troupe::transport
