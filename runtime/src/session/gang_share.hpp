#pragma once

#include <cstdint>
#include <vector>

#include "ids/ids.hpp"
#include "ids/session.hpp"

namespace troupe::runtime {

/// Keeps a gang that this process has asked for, as long as any of its ranks has a handle or its
/// request is pending. With the last share the head is told to end the gang, or to forget the
/// request. Any thread.
struct GangShare {
  const GangId id;
  const std::uint64_t session = current_session();
  HeadRequestId request;  ///< none: the head was not asked yet. The loop's
  /// Of each rank; the loop writes them before the gang counts as placed, and nobody after that.
  std::vector<std::uint32_t> nodes;

  explicit GangShare(GangId gang) : id(gang) {}
  GangShare(const GangShare&) = delete;
  GangShare& operator=(const GangShare&) = delete;
  ~GangShare();
};

}  // namespace troupe::runtime
