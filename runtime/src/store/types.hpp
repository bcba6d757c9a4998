#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ids/ids.hpp"

namespace troupe::store {

using runtime::JobId;
using runtime::NodeId;
using runtime::ProcessId;
/// Made by the process that asks, unique in it; none: no answer is wanted.
using RequestId = scheduler::StrongId<struct StoreRequestTag>;

/// Memory is handed out, counted and given back to the machine by pages.
inline constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// Names an object in the whole cluster: the process that wrote it, and that process's own count.
struct ObjectId {
  ProcessId process{};
  std::uint64_t number = 0;
  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};
std::string to_string(const ObjectId& object);  ///< "7.42"

/// A range of an arena, in bytes from its start; whole pages.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return offset + bytes; }
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

/// Where the store of a node is reached by those of other nodes. A value.
struct NodeAddress {
  NodeId node{};  ///< none: nowhere
  std::string host = {};
  std::uint16_t port = 0;
};
std::string to_string(const NodeAddress& address);  ///< "node 3 (10.0.0.7:4711)"

/// Why the store did not do what it was asked to. `message` has the numbers.
struct Refusal {
  enum class Kind : std::uint8_t {
    TooLarge,  ///< more than the store may ever hold
    Full,      ///< what is in memory is in use, and nothing of it could leave in time
    /// As Full, and it is the machine or the cgroup that gives no more, before the store's own cap.
    MemoryFull,
    DiskFull,  ///< what is in memory could not be written to disk
    Unknown,   ///< no such object: freed, or its owner or writer has ended
    /// The copy on disk, or what came from another node, cannot be read or is not what was written.
    Damaged,
    /// It was not sealed, not back from the disk, or not here from another node, in time.
    TimedOut,
    Invalid,  ///< the request contradicts an earlier one
    Busy,     ///< too many requests wait
    Stopped,  ///< the node, or the way to it, is gone
  };
  Kind kind = Kind::Unknown;
  std::string message = {};
};

std::string format_bytes(std::uint64_t bytes);  ///< "512 B", "100.0 MiB", for messages

}  // namespace troupe::store

template <>
struct std::hash<troupe::store::ObjectId> {
  std::size_t operator()(const troupe::store::ObjectId& id) const noexcept {
    return std::hash<std::uint64_t>()(id.process.value() * 0x9e3779b97f4a7c15u ^ id.number);
  }
};
