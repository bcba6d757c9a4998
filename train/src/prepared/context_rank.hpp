#pragma once

#include <c10/core/Device.h>

#include <troupe/gang_context.hpp>
#include <troupe/train/context_options.hpp>
#include <troupe/trainable.hpp>

namespace troupe::train {

/// Which rank a context is, and what that rank trains with. The context owns it and sets the device
/// before it prepares anything; the context's parts only read it.
struct ContextRank {
  Member& member;
  const ContextOptions options;
  c10::Device device = c10::kCPU;

  int rank() const { return member.gang().rank(); }
  int world_size() const { return member.gang().size(); }
};

}  // namespace troupe::train
