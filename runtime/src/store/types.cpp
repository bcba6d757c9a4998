#include "store/types.hpp"

#include <array>

#include <fmt/format.h>

#include "transport/socket/socket.hpp"

namespace troupe::store {

std::string to_string(const ObjectId& object) {
  return fmt::format("{}.{}", object.process, object.number);
}

std::string to_string(const NodeAddress& address) {
  return fmt::format("node {} ({})", address.node,
                     transport::format_endpoint(address.host, address.port));
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace troupe::store
