#pragma once

#include <troupe/train/communicator.hpp>

#include "guard.hpp"

namespace troupe::testing {

/// A host communicator that cuts even small messages into many chunks.
inline train::HostOptions small_chunks() {
  return {.timeout = troupe::test::kGuard, .chunk_bytes = 4096};
}

}  // namespace troupe::testing
