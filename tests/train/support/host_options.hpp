#pragma once

#include <chrono>

#include <troupe/train/communicator.hpp>

namespace troupe::testing {

/// A host communicator that cuts even small messages into many chunks.
inline train::HostOptions small_chunks() {
  return {.timeout = std::chrono::seconds(20), .chunk_bytes = 4096};
}

}  // namespace troupe::testing
