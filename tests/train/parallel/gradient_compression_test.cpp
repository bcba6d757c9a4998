// Gradients that the ranks send each other in bfloat16.
#include <troupe/train/context.hpp>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/failures/failing_allocator.hpp"
#include "support/forked_gang.hpp"
#include "support/parameter_values.hpp"
#include "support/rank_contexts.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"

#include "compressed_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

TEST_CASE("a rank that has no memory to compress gradients lets no other one wait for it",
          "[train][compression][failure]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          auto options = compressed();
          options.data_parallel.first_bucket_bytes = 1 << 20;  // all of the model
          Context ctx(member, options);
          auto net = ctx.prepare(float_net());
          std::size_t elements = 0;
          for (const auto& parameter : net->parameters())
            elements += static_cast<std::size_t>(parameter.numel());
          // As a bucket of bfloat16.
          if (ctx.rank() == 0) FailingAllocator::installed().fail_for(2 * elements);
          const auto error =
              thrown_by<std::exception>([&] { loss_in(net, ctx.rank(), 2).backward(); });
          expect_in(error, FailingAllocator::kNoMemory);
          if (ctx.rank() == 1) gang.rendezvous().set("has heard of it", "");
          if (ctx.rank() == 0) gang.rendezvous().get("has heard of it", test::kGuard);
        })) == "");
}

TEST_CASE("compressed gradients are the rounded average of rounded gradients",
          "[train][compression]") {
  const bool is_double = GENERATE(false, true);
  CHECK(run(2, compressed(), [=](Context& ctx) {
          expect_rounded_averages(ctx, is_double ? torch::kFloat64 : torch::kFloat32);
        }) == "");
}

TEST_CASE("compressed gradients that are finite have a finite average, and others do not",
          "[train][compression]") {
  const int stage = GENERATE(0, 2, 3);
  const auto type = GENERATE(torch::kFloat32, torch::kFloat64);
  CHECK(run(2, compressed(stage), [=](Context& ctx) { expect_finite_averages(ctx, type); }) == "");
}

TEST_CASE("compressed gradients of ranks on two nodes are near the average",
          "[train][compression]") {
  CHECK(run_in(ForkedGang::on_nodes(4, 2), compressed(), [](Context& ctx) {
          auto net = ctx.prepare(float_net());
          loss_in(net, ctx.rank(), 4).backward();
          const auto own = own_gradients(4, torch::kFloat32);
          for (std::size_t i = 0; i < own[0].size(); ++i) {
            const auto average = (own[0][i] + own[1][i] + own[2][i] + own[3][i]) / 4;
            const auto largest = average.abs().max().item<double>();
            expect(torch::allclose(net->parameters()[i].grad(), average, 0, 0.03 * largest),
                   fmt::format("gradient {} to the precision of bfloat16", i));
          }
        }) == "");
}

TEST_CASE("compression gives the same parameters at all stages of ZeRO", "[train][compression]") {
  const bool find_unused = GENERATE(false, true);
  const KeptValues without;
  CHECK(run(2, compressed(0, find_unused), [&](Context& ctx) {
          without.keep(ctx, trained_compressed(ctx, torch::kFloat32));
        }) == "");
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    CHECK(run(2, compressed(stage, find_unused), [&](Context& ctx) {
            without.expect_same_as(trained_compressed(ctx, torch::kFloat32), 1e-6, "with ZeRO");
          }) == "");
  }
}

TEST_CASE("gradients of bfloat16 are averaged as without compression", "[train][compression]") {
  const KeptValues without;
  CHECK(run(2, options_with(0), [&](Context& ctx) {
          without.keep(ctx, trained_compressed(ctx, torch::kBFloat16));
        }) == "");
  CHECK(run(2, compressed(), [&](Context& ctx) {
          without.expect_same_as(trained_compressed(ctx, torch::kBFloat16), 0, "compressed");
        }) == "");
}

TEST_CASE("after a backward that an exception has left, compressed gradients are averages again",
          "[train][compression][failure]") {
  CHECK(run(2, compressed(), [](Context& ctx) {
          auto net = ctx.prepare(float_net());
          bool fails = ctx.rank() == 1;
          net->layers[1]->weight.register_hook([&](const at::Tensor&) {
            if (fails) throw std::runtime_error("no more memory");
          });
          thrown_by<std::exception>([&] { loss_in(net, ctx.rank(), 2).backward(); });
          fails = false;
          net->zero_grad();
          loss_in(net, ctx.rank(), 2).backward();
          expect_rounded_average(ctx, net, 0);
        }) == "");
}
