// Trainings whose graphs, unused parameters, undefined gradients and accumulation are random: after
// each step all ranks have the same weights, bit for bit, and those of one process.
#include <troupe/train/context.hpp>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "rounds.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

using Random = std::minstd_rand;
constexpr std::int64_t kWidth = 5;
constexpr double kRandomTolerance = 1e-9;  // of float64, after sums in another order

/// Passes its input on, and gives an undefined gradient.
struct Closed : torch::autograd::Function<Closed> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& weight) {
    return weight.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list) {
    return {torch::Tensor()};
  }
};

/// Of one batch on one rank: which layers it goes through, in order, and whose gradients are then
/// undefined.
struct Batch {
  std::vector<int> layers;
  std::vector<bool> closed;
  std::uint64_t seed = 0;
};

int below(Random& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

/// `all`: through each layer.
Batch random_batch(Random& random, int layers, bool all) {
  Batch batch{{}, {}, random()};
  for (int layer = 0; layer < layers; ++layer) {
    if (all || below(random, 3) != 0) batch.layers.push_back(layer);
  }
  if (batch.layers.empty()) batch.layers.push_back(below(random, layers));
  std::shuffle(batch.layers.begin(), batch.layers.end(), random);
  for (std::size_t i = 0; i < batch.layers.size(); ++i)
    batch.closed.push_back(below(random, 5) == 0);
  return batch;
}

torch::Tensor batch_loss(Net& net, const Batch& batch) {
  auto x = rows(3, kWidth, batch.seed);
  for (std::size_t i = 0; i < batch.layers.size(); ++i) {
    const auto& layer = net->layers[static_cast<std::size_t>(batch.layers[i])];
    const auto weight = batch.closed[i] ? Closed::apply(layer->weight) : layer->weight;
    x = torch::tanh(torch::addmm(layer->bias, x, weight.t()));
  }
  return x.square().sum();
}

/// How gradients of the step before are dropped.
enum class Drop { ToNone, ToZero, Not };

void drop(Net& net, Drop how) {
  if (how != Drop::Not) net->zero_grad(how == Drop::ToNone);
}

/// What one process makes of all ranks' batches: to what it had, the mean of the ranks' sums, of
/// parameters that any rank used.
void accumulate_alone(Net& net, const std::vector<std::vector<Batch>>& of_ranks) {
  for (const auto& batches : of_ranks) {
    for (const auto& batch : batches)
      (batch_loss(net, batch) / static_cast<double>(of_ranks.size())).backward();
  }
}

struct RandomTraining {
  int layers;
  double momentum;
};

RandomTraining random_training(Random& random) {
  return {.layers = 1 + below(random, 5), .momentum = below(random, 2) * 0.9};
}

ContextOptions random_options(Random& random) {
  const auto bucket_bytes = std::size_t{50} << below(random, 6);
  ContextOptions options;
  options.data_parallel = {.first_bucket_bytes = bucket_bytes,
                           .bucket_bytes = bucket_bytes,
                           .find_unused_parameters = below(random, 2) == 0};
  return options;
}

std::vector<std::vector<Batch>> random_step(Random& random, const RandomTraining& training,
                                            Context& ctx) {
  const bool find_unused = ctx.options().data_parallel.find_unused_parameters;
  std::vector<std::vector<Batch>> of_ranks;
  for (int rank = 0; rank < ctx.world_size(); ++rank) {
    std::vector<Batch> batches;
    const int count = 1 + below(random, 3);
    // Without find_unused each parameter is used once at least.
    const int whole = find_unused ? -1 : below(random, count);
    for (int i = 0; i < count; ++i)
      batches.push_back(random_batch(random, training.layers, i == whole));
    of_ranks.push_back(std::move(batches));
  }
  return of_ranks;
}

void expect_equal(Context& ctx, Net& net, Net& reference, const std::string& when) {
  for (const auto& item : net->named_parameters()) {
    const auto& weight = item.value();
    auto of_root = weight.detach().clone();
    ctx.communicator().broadcast(of_root.data_ptr(), static_cast<std::size_t>(of_root.numel()),
                                 DataType::Float64, 0);
    expect(torch::equal(of_root, weight), [&] { return item.key() + " is rank 0's " + when; });
    const auto alone = reference->named_parameters()[item.key()];
    expect(torch::allclose(weight, alone, kRandomTolerance, kRandomTolerance),
           [&] { return item.key() + " is that of one process " + when; });
  }
}

void train_at_random(Context& ctx, std::uint64_t seed) {
  Random random(static_cast<unsigned>(seed));
  const auto training = random_training(random);
  const std::vector<std::int64_t> widths(static_cast<std::size_t>(training.layers) + 1, kWidth);
  auto net = ctx.prepare(Net(widths, seed));
  Net reference(widths, seed);
  auto optimizer_of = [&](Net& of) {
    return torch::optim::SGD(of->parameters(),
                             torch::optim::SGDOptions(0.05).momentum(training.momentum));
  };
  auto optimizer = ctx.prepare(optimizer_of(net));
  auto alone = optimizer_of(reference);
  for (int step = 0; step < 5; ++step) {
    auto how = static_cast<Drop>(below(random, 3));
    // With ZeRO's stages 2 and 3 a rank has no whole gradient that could be set to zero.
    if (how == Drop::ToZero && ctx.options().zero.stage >= 2) how = Drop::ToNone;
    const auto of_ranks = random_step(random, training, ctx);
    drop(net, how);
    drop(reference, how);
    const auto& own = of_ranks[static_cast<std::size_t>(ctx.rank())];
    {
      const auto guard = ctx.no_sync();
      for (std::size_t i = 0; i + 1 < own.size(); ++i) batch_loss(net, own[i]).backward();
    }
    batch_loss(net, own.back()).backward();
    accumulate_alone(reference, of_ranks);
    optimizer.step();
    alone.step();
    expect_equal(ctx, net, reference, fmt::format("after step {} of seed {}", step, seed));
  }
}

}  // namespace

TEST_CASE("random trainings give all ranks the weights of one process",
          "[train][random_training]") {
  const int ranks = GENERATE(2, 3, 4);
  const bool two_nodes = GENERATE(false, true);
  const int stage = GENERATE(0, 2, 3);  // of ZeRO
  const auto gang = two_nodes ? ForkedGang::on_nodes(ranks, 2) : ForkedGang::on_one_node(ranks);
  for (unsigned seed = 1; seed <= test::rounds(4, 4); ++seed) {
    CHECK(failures(gang.run([&](GangContext& context) {
            Random random(seed);
            TestMember member(context);
            auto options = random_options(random);
            options.zero.stage = stage;
            Context ctx(member, options);
            for (std::uint64_t i = 0; i < 5; ++i) train_at_random(ctx, 100 * seed + i);
          })) == "");
  }
}
