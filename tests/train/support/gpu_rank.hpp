#pragma once

#include <functional>
#include <string>
#include <utility>

#include <c10/core/Device.h>
#include <torch/utils.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/one_gpu.hpp"
#include "support/parameter_values.hpp"
#include "support/rank_contexts.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

/// Ranks that train on one GPU, which they share. To be used in forked ranks only, but for
/// run_on_gpu().
namespace troupe::testing {

/// A rank's context on the one GPU.
struct GpuRank {
  explicit GpuRank(GangContext& gang, train::ContextOptions options = small_buckets(),
                   std::string storage = {}, std::string restore_from = {})
      : member((share_one_gpu(gang.rank()), gang), std::move(storage), std::move(restore_from)),
        ctx(member, std::move(options)) {
    expect(ctx.device().is_cuda(), "the rank is on a GPU");
  }
  TestMember member;
  train::Context ctx;
};

/// Runs a function in each rank of a gang on the GPU, with the rank's context. -> failures() of the
/// ranks.
inline std::string run_on_gpu(int ranks, const train::ContextOptions& options,
                              const std::function<void(train::Context&)>& rank,
                              const Folders& folders = {}) {
  return failures(ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
    GpuRank on_gpu(gang, options, folders.storage.string(), folders.from.string());
    rank(on_gpu.ctx);
  }));
}

inline constexpr double kInOtherOrder = 1e-9;  // float64, whose sums have other orders

/// One process's net on the GPU.
inline Net reference_on(c10::Device device) {
  Net net(kWidths);
  net->to(device);
  return net;
}

/// Bit for bit, on all ranks.
inline void expect_same_everywhere(train::Context& ctx, Net& net) {
  for (const auto& item : net->named_parameters()) {
    auto of_root = item.value().detach().clone();
    ctx.communicator().broadcast(of_root.data_ptr(), static_cast<std::size_t>(of_root.numel()),
                                 train::DataType::Float64, 0);
    expect(torch::equal(of_root, item.value()), item.key() + " is the same on all ranks");
  }
}

}  // namespace troupe::testing
