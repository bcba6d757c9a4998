// Trainings whose communicator is NCCL's, over a double of NCCL. Tensors are on other_device(),
// whose memory the double takes for a GPU's.
#include <troupe/train/context.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/optim/adam.h>
#include <troupe/errors.hpp>

#include "parallel/device.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/nccl_double/nccl_double.hpp"
#include "support/net.hpp"
#include "support/other_device.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
using Backend = ContextOptions::Backend;

namespace {

/// A rank's context. Each rank of a node has a device of its own.
struct OverNccl {
  OverNccl(GangContext& gang, Backend backend, int stage) : member(prepared(gang)) {
    auto options = small_buckets();
    options.backend = backend;
    options.zero.stage = stage;
    ctx.emplace(member, options);
  }
  static GangContext& prepared(GangContext& gang) {
    use_device(other_device());
    nccl_double::behave({.devices = gang.size(), .takes_any_memory = true});
    return gang;
  }
  TestMember member;
  std::optional<Context> ctx;
};

/// Over a rank's part of the rows.
torch::Tensor squares(Context& ctx, Net& net, std::uint64_t number) {
  const auto of_rank = [&](std::int64_t width, std::uint64_t seed) {
    return part(rows(kRows, width, seed), ctx.rank(), ctx.world_size()).to(ctx.device());
  };
  const auto x = of_rank(kWidths.front(), 10 + number);
  const auto y = of_rank(kWidths.back(), 20 + number);
  return (net->forward(x) - y).square().mean();
}

void step(Context& ctx, Net& net, torch::optim::Optimizer& optimizer, std::uint64_t number) {
  optimizer.zero_grad();
  net->zero_grad();
  squares(ctx, net, number).backward();
  optimizer.step();
}

std::vector<torch::Tensor> trained(GangContext& gang, Backend backend, int stage) {
  OverNccl rank(gang, backend, stage);
  auto& ctx = *rank.ctx;
  expect(ctx.communicator().name() == (backend == Backend::Nccl ? "nccl" : "host"), "its backend");
  auto net = ctx.prepare(Net(kWidths));
  auto optimizer =
      ctx.prepare(torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.01)));
  for (std::uint64_t number = 0; number < 4; ++number) step(ctx, net, optimizer, number);
  const auto whole = ctx.gathered(net);
  std::vector<torch::Tensor> values;
  for (const auto& parameter : net->parameters())
    values.push_back(parameter.detach().cpu().clone());
  return values;
}

}  // namespace

TEST_CASE("a training over NCCL's calls gives what one over the host communicator gives",
          "[train][parallel][nccl][double]") {
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  CHECK(failures(ForkedGang::on_one_node(2).run([stage](GangContext& gang) {
          const auto expected = trained(gang, Backend::Host, stage);
          const auto values = trained(gang, Backend::Nccl, stage);
          expect(values.size() == expected.size(), "as many parameters");
          for (std::size_t i = 0; i < values.size(); ++i)
            expect(torch::equal(values[i], expected[i]), "parameter " + std::to_string(i));
        })) == "");
}

TEST_CASE("a rank that leaves a training over NCCL by an exception ends the others' step",
          "[train][parallel][nccl][double]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    const Leaving leaving(gang, 1);
    try {
      OverNccl rank(gang, Backend::Nccl, 0);
      auto net = rank.ctx->prepare(Net(kWidths));
      auto optimizer = rank.ctx->prepare(torch::optim::Adam(net->parameters()));
      step(*rank.ctx, net, optimizer, 0);
      if (gang.rank() == 1) throw std::runtime_error("no such row");
      step(*rank.ctx, net, optimizer, 1);
    } catch (const std::runtime_error&) {
      if (gang.rank() != 1) throw;
      await_leaving(gang);
    }
  });
  CHECK(failures({outcomes[1]}) == "");
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains("rank 1"));
}
