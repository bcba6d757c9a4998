#include "store/memory/memory_room.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "os/cgroup.hpp"
#include "store/types.hpp"

namespace troupe::store {
namespace {

MemoryRoom of_machine() {
  MemoryRoom room{.available = 0, .limit = 0, .who = "this machine"};
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    words >> name >> kibibytes;
    if (name == "MemTotal:") room.limit = kibibytes << 10;
    if (name == "MemAvailable:") room.available = kibibytes << 10;
  }
  return room;
}

}  // namespace

MemoryRoom memory_room() {
  auto room = of_machine();
  const auto group = os::tightest_memory_cgroup();
  if (!group) return room;
  const auto left = group->limit_bytes - std::min(group->limit_bytes, group->used_bytes);
  if (left >= room.available) return room;
  return {left, group->limit_bytes, "the cgroup " + group->directory};
}

std::string describe(const MemoryRoom& room) {
  return fmt::format("{} has {} left of {}", room.who, format_bytes(room.available),
                     format_bytes(room.limit));
}

}  // namespace troupe::store
