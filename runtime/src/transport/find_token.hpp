#pragma once

#include <optional>
#include <string>

#include "config/token.hpp"
#include "transport/socket/endpoint.hpp"

namespace troupe::transport {

/// Why no connection to `to` can be had; nothing: somebody listens there, or has not said within
/// 900 ms.
std::optional<std::string> why_nobody_listens(const Endpoint& to);

/// config::find_token, for the head at `to`. Where there is no token, or none that can be read, and
/// nobody listens at `to` either, throws Disconnected, which says that: it is the first thing to
/// mend. Blocks for less than a second.
config::FoundToken find_token(const Endpoint& to, const std::string& file);

/// For the end of an error that the head at `to` was not reached, or is of another cluster: where
/// config::known_head() is another one, "; the head that was last started on this machine, by this
/// user, is at HOST:PORT". Else empty. Reads a file, and throws nothing.
std::string about_other_head(const Endpoint& to);

}  // namespace troupe::transport
