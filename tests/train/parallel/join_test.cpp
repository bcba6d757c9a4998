// Ranks with different numbers of batches: all make as many steps, and a batch that a rank goes
// through again counts nowhere.
#include <troupe/train/context.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/sgd.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/zero_training.hpp"

#include "join_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

double sum_of_losses(Context& ctx, Net& net, torch::optim::Optimizer& optimizer,
                     const std::vector<Pair>& batches) {
  double sum = 0;
  // [join]
  for (const auto& batch : ctx.join(batches)) {  // of this rank
    optimizer.zero_grad();
    const auto loss = loss_of_pair(net, batch);
    loss.backward();
    optimizer.step();
    if (!ctx.repeats_batch()) sum += loss.item<double>();
  }
  // [/join]
  return sum;
}

torch::Tensor loss_of_first_layer(Net& net, const Pair& pair) {
  return net->layers[0]->forward(pair.first).square().mean();
}

torch::nn::BatchNorm1d norm_of() {
  torch::nn::BatchNorm1d norm(6);
  norm->to(torch::kFloat64);
  return norm;
}

}  // namespace

TEST_CASE("ranks with different numbers of batches train as one process that has all of them",
          "[train][join]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int each = GENERATE(1, 2);
  const bool find_unused = GENERATE(false, true);
  if (find_unused && stage % 2 == 1) return;  // as with the stage below
  const Counts counts{1, 4, 3};
  CHECK(run(3, options_with(stage, find_unused),
            [&](Context& ctx) { expect_joined_as_alone(ctx, counts, each); }) == "");
}

TEST_CASE("what batches reach under no_sync() alone is averaged once a rank's have ended",
          "[train][join]") {
  const int stage = GENERATE(0, 2);
  CHECK(run(2, options_with(stage), [](Context& ctx) {
          const Counts counts{1, 3};
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(fast_adam(net));
          const auto pairs = pairs_of(ctx.rank(), counts);
          for (const auto& pair : ctx.join(pairs)) {
            optimizer.zero_grad();
            {
              const auto guard = ctx.no_sync();
              loss_of_pair(net, pair).backward();
            }
            loss_of_first_layer(net, pair).backward();
            optimizer.step();
          }
          Net alone(kWidths, 5);
          auto adam = fast_adam(alone);
          for (int step = 0; step < 3; ++step) {
            adam.zero_grad();
            for (int rank = 0; rank < 2; ++rank) {
              if (step >= counts[static_cast<std::size_t>(rank)]) continue;
              const auto pair = pair_of(rank, step);
              ((loss_of_pair(alone, pair) + loss_of_first_layer(alone, pair)) / 2).backward();
            }
            adam.step();
          }
          expect_same(whole_values(ctx, net), values_of(alone), 1e-9, "joined");
        }) == "");
}

TEST_CASE("a program adds up what counts", "[train][join]") {
  CHECK(run(2, options_with(0), [](Context& ctx) {
          const Counts counts{3, 1};
          auto net = ctx.prepare(Net(kWidths, 5));
          auto still = ctx.prepare(torch::optim::SGD(net->parameters(), /*lr=*/0.0));
          double expected = 0;
          for (const auto& pair : pairs_of(ctx.rank(), counts))
            expected += loss_of_pair(net, pair).item<double>();
          const auto sum = sum_of_losses(ctx, net, still, pairs_of(ctx.rank(), counts));
          expect(std::abs(sum - expected) < 1e-12, "the sum of the losses of a rank's batches");
        }) == "");
}

TEST_CASE("one rank goes through its batches as without join, also of a loader", "[train][join]") {
  CHECK(run(1, options_with(0), [](Context& ctx) {
          const auto all = rows(10, 2, 1);
          const Dataset data{.data = all, .target = all};
          std::vector<torch::Tensor> plain;
          for (auto& batch : ctx.loader(data, 4, 0)) plain.push_back(batch.data);
          std::size_t at = 0;
          for (auto& batch : ctx.join(ctx.loader(data, 4, 0))) {
            expect(torch::equal(batch.data, plain.at(at++)), "the loader's batch");
            expect(!ctx.repeats_batch(), "no batch is repeated");
          }
          expect(at == 3, "three batches");
        }) == "");
}

TEST_CASE("buffers are those of the first rank whose batch counts", "[train][join]") {
  CHECK(run(2, options_with(0), [](Context& ctx) {
          auto norm = ctx.prepare(norm_of());
          const Counts counts{1, 3};
          const auto pairs = pairs_of(ctx.rank(), counts);
          for (const auto& pair : ctx.join(pairs))
            (norm->forward(pair.first) * rows(4, 6, 9)).sum().backward();
          auto alone = norm_of();
          for (const auto& [rank, number] : {std::pair{0, 0}, {1, 1}, {1, 2}})
            alone->forward(pair_of(rank, number).first);
          expect(torch::allclose(norm->running_mean, alone->running_mean, 1e-12, 1e-12) &&
                     torch::allclose(norm->running_var, alone->running_var, 1e-12, 1e-12),
                 "the running statistics of the batches that count");
        }) == "");
}

TEST_CASE("a rank without a batch is named on all ranks, and none waits", "[train][join]") {
  const auto error = error_of(
      [](Context& ctx) {
        const auto pairs = pairs_of(ctx.rank(), {2, 0, 1});
        for (const auto& pair : ctx.join(pairs)) expect(pair.first.defined(), "no step");
      },
      0, 3);
  CHECK_THAT(error, Contains("invalid_argument") && Contains("rank 1 has no batch at all") &&
                        Contains("rank 0 has one"));
}

TEST_CASE("a loop that no rank has a batch for has no step", "[train][join]") {
  CHECK(run(2, options_with(0), [](Context& ctx) {
          const std::vector<Pair> none;
          for (const auto& pair : ctx.join(none)) expect(pair.first.defined(), "no step");
        }) == "");
}

TEST_CASE("after a loop that was left early, and after a refused one, every batch counts",
          "[train][join]") {
  CHECK(run(2, options_with(0), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          const auto pairs = pairs_of(ctx.rank(), {1, 3});
          int step = 0;
          for (const auto& pair : ctx.join(pairs)) {
            loss_of_pair(net, pair).backward();
            thrown_by<std::logic_error>([&] { ctx.join(pairs); });  // a loop inside of a loop
            if (++step == 2) break;
          }
          expect(!ctx.repeats_batch(), "rank 0's next batch counts");
          net->zero_grad();
          loss_of_pair(net, pair_of(ctx.rank(), 7)).backward();
          Net alone(kWidths, 5);
          for (int rank = 0; rank < 2; ++rank)
            (loss_of_pair(alone, pair_of(rank, 7)) / 2).backward();
          for (std::size_t i = 0; i < alone->parameters().size(); ++i)
            expect(torch::allclose(net->parameters()[i].grad(), alone->parameters()[i].grad(),
                                   1e-12, 1e-12),
                   "the average of both ranks");
          for (const auto& pair : ctx.join(pairs)) loss_of_pair(net, pair).backward();
        }) == "");
}

TEST_CASE("ranks in other loops, or steps of them, are told", "[train][join]") {
  const auto error = error_of(
      [](Context& ctx) {
        const auto pairs = pairs_of(ctx.rank(), {3, 3});
        int step = 0;
        for (const auto& pair : ctx.join(pairs)) {
          expect(pair.first.defined(), "a batch");
          if (++step == 1 + ctx.rank()) break;
        }
        for (const auto& pair : ctx.join(pairs)) expect(pair.first.defined(), "a batch");
      },
      0, 2);
  CHECK_THAT(error, Contains("rank 0 begins step 1 of loop 2 of ctx.join(), and rank 1 step 2 "
                             "of loop 1"));
}

namespace elsewhere {
/// A range whose begin() and end() are found by its namespace alone.
struct Batches {
  std::vector<int> numbers;
};
auto begin(const Batches& batches) { return batches.numbers.begin(); }
auto end(const Batches& batches) { return batches.numbers.end(); }
}  // namespace elsewhere

TEST_CASE("whatever a for loop takes can be joined", "[train][join]") {
  CHECK(run(2, options_with(0), [](Context& ctx) {
          const elsewhere::Batches batches{ctx.rank() == 0 ? std::vector{1, 2} : std::vector{3}};
          int sum = 0;
          for (const int number : ctx.join(batches)) sum += number;
          expect(sum == (ctx.rank() == 0 ? 3 : 6), "each rank's batches, and its last one again");
          const int numbers[] = {4, 5};
          for (const int number : ctx.join(numbers)) sum += number;
          expect(sum == (ctx.rank() == 0 ? 12 : 15), "those of an array");
        }) == "");
}
