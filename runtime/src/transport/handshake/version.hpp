#pragma once

#include <string_view>

namespace troupe::transport {

/// Of the software, as a handshake names it to people. What decides is the protocol range in
/// handshake.hpp.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace troupe::transport
