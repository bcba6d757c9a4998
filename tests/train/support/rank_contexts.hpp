#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <troupe/train/context.hpp>

#include "parallel/device.hpp"
#include "support/forked_gang.hpp"
#include "support/test_member.hpp"

/// Gangs whose ranks have a context each.
namespace troupe::testing {

struct Folders {
  std::filesystem::path storage = {};  ///< where the run writes checkpoints; empty: nowhere
  std::filesystem::path from = {};     ///< the checkpoint that the run continues from; empty: none
};

/// Runs a function in each rank of a gang, with the rank's context. -> failures() of the ranks.
/// `device`: on which the ranks train; none: that which a rank of a run would have.
inline std::string run_in(const ForkedGang& gang, const train::ContextOptions& options,
                          const std::function<void(train::Context&)>& rank,
                          const Folders& folders = {},
                          std::optional<c10::Device> device = std::nullopt) {
  return failures(gang.run([&](GangContext& context) {
    if (device) train::use_device(*device);
    TestMember member(context, folders.storage, folders.from);
    train::Context ctx(member, options);
    rank(ctx);
  }));
}

/// The same on one node.
inline std::string run(int ranks, const train::ContextOptions& options,
                       const std::function<void(train::Context&)>& rank,
                       const Folders& folders = {},
                       std::optional<c10::Device> device = std::nullopt) {
  return run_in(ForkedGang::on_one_node(ranks), options, rank, folders, device);
}

}  // namespace troupe::testing
