#include "parallel/communicators.hpp"

#include "collective/call.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kControlChunk = 16 << 10;

std::string control_of(const std::string& name) { return name + " control"; }

}  // namespace

void Communicators::abort(std::string_view reason) const {
  for (auto* each : {device.get(), main.get()}) {
    if (each != nullptr) each->abort(reason);
  }
}

Communicators make_communicators(GangContext& gang, const ContextOptions& options,
                                 c10::Device device, const std::string& name) {
  using Backend = ContextOptions::Backend;
  HostOptions host{.name = name, .timeout = options.timeout, .warn_after = options.warn_after};
  if (options.backend != Backend::Nccl && !(options.backend == Backend::Auto && device.is_cuda()))
    return {.device = make_host_communicator(gang, host)};
  NcclOptions nccl{.name = name, .timeout = options.timeout, .warn_after = options.warn_after};
  if (device.is_cuda()) nccl.device = device.index();
  Communicators made{.device = make_nccl_communicator(gang, nccl)};
  if (gang.size() > 1) {
    host.name = control_of(name);
    host.chunk_bytes = kControlChunk;
    made.main = make_host_communicator(gang, host);
  }
  return made;
}

void decline_communicators(GangContext& gang, const std::string& name, const std::string& why) {
  for (const auto& each : {name, control_of(name)}) decline(gang, each, why);
}

}  // namespace troupe::train
