// A model's buffers are rank 0's after each backward that averages.
#include <troupe/train/context.hpp>

#include <memory>

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/net.hpp"
#include "support/rank_contexts.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

/// With buffers of several types, one of which has no elements.
struct NormedImpl : torch::nn::Module {
  NormedImpl() {
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    seen = register_buffer("seen", torch::zeros({5}, torch::kBool));
    steps = register_buffer("steps", torch::zeros({}, torch::kInt16));
    sums = register_buffer("sums", torch::zeros({2, 3}, torch::kFloat64).t());
    register_buffer("nothing", torch::zeros({0}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return norm->forward(x); }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor seen;
  torch::Tensor steps;
  torch::Tensor sums;
};
TORCH_MODULE(Normed);

torch::Tensor input_of(int rank, int step) {
  return rows(4, 3, static_cast<std::uint64_t>(10 * rank + step)).to(torch::kFloat32) + rank;
}

torch::Tensor loss_after(Normed& model, int rank, int step) {
  return (model->forward(input_of(rank, step)) * input_of(7, step)).sum();
}

/// Each rank's own values.
void write_buffers(Normed& model, int rank) {
  model->seen[rank] = true;
  model->steps.fill_(rank + 20);
  model->sums.fill_(rank + 0.5);
}

bool has_buffers_of(const Normed& model, int rank) {
  return model->seen[rank].item<bool>() && model->seen.sum().item<int>() == 1 &&
         model->steps.item<int>() == rank + 20 && (model->sums == rank + 0.5).all().item<bool>();
}

ContextOptions with_buffers(bool broadcast) {
  ContextOptions options;
  options.data_parallel.broadcast_buffers = broadcast;
  return options;
}

}  // namespace

TEST_CASE("buffers are rank 0's after a backward that averages, unless each rank keeps its own",
          "[train][buffers]") {
  const auto [broadcast, stage] =
      GENERATE(table<bool, int>({{true, 0}, {false, 0}, {true, 2}, {true, 3}}));
  auto options = with_buffers(broadcast);
  options.zero.stage = stage;
  CHECK(run(3, options, [broadcast = broadcast](Context& ctx) {
          auto model = ctx.prepare(Normed());
          Normed alone;
          const int rank = ctx.rank();
          write_buffers(model, rank);
          {
            const auto guard = ctx.no_sync();
            loss_after(model, rank, 0).backward();
          }
          expect(has_buffers_of(model, rank), "a rank's own buffers under no_sync");
          loss_after(model, rank, 1).backward();
          const int whose = broadcast ? 0 : rank;
          expect(has_buffers_of(model, whose),
                 fmt::format("the buffers of rank {} on rank {}", whose, rank));
          for (const int step : {0, 1}) alone->forward(input_of(whose, step));
          expect(torch::equal(model->norm->running_mean, alone->norm->running_mean) &&
                     torch::equal(model->norm->running_var, alone->norm->running_var) &&
                     model->norm->num_batches_tracked.item<int>() == 2,
                 "its running statistics");
        }) == "");
}

// As of a discriminator, which sees real and made rows before the backward of either.
TEST_CASE("a backward may follow whose forward has used buffers that another one then changed",
          "[train][buffers]") {
  const bool is_training = GENERATE(true, false);
  CHECK(run(2, with_buffers(true), [=](Context& ctx) {
          auto model = ctx.prepare(Normed());
          model->train(is_training);
          const auto first = loss_after(model, ctx.rank(), 0);
          const auto second = loss_after(model, ctx.rank(), 1);
          first.backward();
          second.backward();
          expect(model->norm->weight.grad().defined(), "gradients of both");
        }) == "");
}
