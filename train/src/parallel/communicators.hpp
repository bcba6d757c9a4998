#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <c10/core/Device.h>

#include <troupe/gang_context.hpp>
#include <troupe/train/communicator.hpp>
#include <troupe/train/context_options.hpp>

namespace troupe::train {

/// What a rank's tensors go through, and what is said about them.
struct Communicators {
  std::unique_ptr<Communicator> device = {};  ///< over memory of the rank's device
  std::unique_ptr<Communicator> main = {};    ///< over main memory, where `device` is not

  Communicator& control() const { return main ? *main : *device; }
  /// Those that there are.
  void abort(std::string_view reason) const;
};

/// A collective. `name`: in the gang, of this pair alone. NCCL's communicator has one over main
/// memory beside it, as NCCL compares nothing, and a few bytes are faster there.
Communicators make_communicators(GangContext& gang, const ContextOptions& options,
                                 c10::Device device, const std::string& name);

/// Tells ranks that make this pair, or will, that this one does not.
void decline_communicators(GangContext& gang, const std::string& name, const std::string& why);

}  // namespace troupe::train
