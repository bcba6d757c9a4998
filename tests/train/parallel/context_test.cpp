#include <troupe/train/context.hpp>

#include <filesystem>
#include <functional>
#include <set>
#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include "checkpoint/directory.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
namespace fs = std::filesystem;

namespace {

torch::optim::Adam context_adam(Net& net) {
  return torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.05));
}

void context_step(Context& ctx, Net& net, torch::optim::Adam& optim, int epoch) {
  const auto seed = static_cast<std::uint64_t>(epoch);
  const auto x = part(rows(12, 4, seed), ctx.rank(), ctx.world_size());
  const auto y = part(rows(12, 2, seed + 100), ctx.rank(), ctx.world_size());
  optim.zero_grad();
  torch::nn::functional::mse_loss(net->forward(x), y).backward();
  optim.step();
}

/// Trains to `epochs`, with a checkpoint after each. -> the last layer's bias and the epochs that
/// were seen.
std::vector<double> run_epochs(Context& ctx, int epochs, std::vector<int>& seen) {
  auto net = ctx.prepare(Net(kNarrowWidths, 3 + static_cast<std::uint64_t>(ctx.rank())));
  auto optim = ctx.prepare(context_adam(net));
  for (int epoch : ctx.epochs(epochs)) {
    seen.push_back(epoch);
    context_step(ctx, net, optim, epoch);
    ctx.report({{"epoch", epoch}}, ctx.checkpoint(net, optim));
  }
  const auto bias = net->layers.back()->bias.detach().contiguous();
  return {bias.const_data_ptr<double>(), bias.const_data_ptr<double>() + bias.numel()};
}

}  // namespace

TEST_CASE(
    "a run that goes on from a checkpoint ends where an unbroken one does, with other ranks too",
    "[train][context][checkpoint]") {
  const Scratch storage;
  const auto whole = (storage.path() / "whole").string();
  const auto first = (storage.path() / "first").string();
  const int ranks_later = GENERATE(1, 2, 3);

  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang, first);
          Context ctx(member);
          std::vector<int> seen;
          run_epochs(ctx, 3, seen);
          expect(seen == std::vector{0, 1, 2}, "epochs 0, 1, 2");
          expect(member.reports.size() == 3, "three reports");
          expect((gang.rank() == 0) == !member.reports.back().checkpoint.empty(),
                 "a checkpoint of rank 0 only");
        })) == "");
  const auto checkpoint = latest_checkpoint(first);
  CHECK(checkpoint.filename() == "checkpoint_000002");
  CHECK(fs::exists(checkpoint / "model0_rank0.safetensors"));

  CHECK(failures(ForkedGang::on_one_node(ranks_later).run([&](GangContext& gang) {
          TestMember unbroken(gang);
          std::vector<int> seen;
          std::vector<double> expected;
          {
            ContextOptions options;
            Context ctx(unbroken, options);
            expected = run_epochs(ctx, 6, seen);
          }
          // One gang has one context; a second one would need a rendezvous of its own.
          if (gang.size() > 1) return;
          TestMember resumed(gang, {}, checkpoint.string());
          Context ctx(resumed);
          seen.clear();
          const auto got = run_epochs(ctx, 6, seen);
          expect(seen == std::vector{3, 4, 5}, "epochs 3, 4, 5");
          for (std::size_t i = 0; i < got.size(); ++i)
            expect(std::abs(got[i] - expected[i]) < 1e-9, "the same weights");
        })) == "");

  CHECK(failures(ForkedGang::on_one_node(ranks_later).run([&](GangContext& gang) {
          TestMember resumed(gang, {}, checkpoint.string());
          Context ctx(resumed);
          std::vector<int> seen;
          run_epochs(ctx, 6, seen);
          expect(seen == std::vector{3, 4, 5}, "epochs 3, 4, 5 on every rank");
        })) == "");
}

TEST_CASE("epochs end after a report that was answered with Stop", "[train][context]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          member.stop_at = 2;
          Context ctx(member);
          int epochs = 0;
          for (int epoch : ctx.epochs(10)) {
            ++epochs;
            expect((ctx.report({{"epoch", epoch}}) == Verdict::Stop) == (epoch == 1),
                   "Stop for the second report");
          }
          expect(epochs == 2, "two epochs");
        })) == "");
}

TEST_CASE("without storage a checkpoint is empty and costs nothing",
          "[train][context][checkpoint]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          expect(ctx.checkpoint(net).directory.empty(), "no checkpoint");
        })) == "");
}

TEST_CASE("a checkpoint of another model is refused with the first difference",
          "[train][context][checkpoint]") {
  const Scratch storage;
  const auto outcomes = ForkedGang::on_one_node(1).run([&](GangContext& gang) {
    TestMember member(gang, storage.path().string());
    Context ctx(member);
    auto net = ctx.prepare(Net(std::vector<std::int64_t>{4, 2}));
    const auto saved = ctx.checkpoint(net);
    TestMember other(gang, {}, saved.directory);
    Context again(other);
    again.prepare(Net(std::vector<std::int64_t>{4, 8, 2}));
  });
  CHECK_THAT(outcomes[0].message,
             Catch::Contains("checkpoint_000000 is of another model: 'layer0.weight' has the shape "
                             "[8, 4] in the model and [2, 4] in the checkpoint"));
}

TEST_CASE("an optimizer that a checkpoint does not have is told with what it has",
          "[train][context][checkpoint]") {
  const Scratch scratch;
  const auto run = [&](const fs::path& from, const std::function<void(Context&)>& rank) {
    return ForkedGang::on_one_node(1)
        .run([&](GangContext& gang) {
          TestMember member(gang, scratch.path(), from);
          Context ctx(member);
          rank(ctx);
        })
        .front()
        .message;
  };
  REQUIRE(run({}, [](Context& ctx) { ctx.checkpoint(ctx.prepare(Net(kNarrowWidths))); }) == "");
  CHECK_THAT(run(latest_checkpoint(scratch.path()),
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kNarrowWidths));
                   ctx.prepare(context_adam(net));
                 }),
             Catch::Contains("optimizer 0 is prepared, and the checkpoint") &&
                 Catch::Contains("was written with 0"));
}

TEST_CASE("a checkpoint without a rank that has returned names the call and what to do",
          "[train][context][failure]") {
  const Scratch scratch;
  const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    const Leaving leaving(gang, 1);
    {
      TestMember member(gang, scratch.path());
      Context ctx(member);
      auto net = ctx.prepare(Net(kNarrowWidths));
      if (ctx.rank() == 0) ctx.checkpoint(net);
    }
    if (gang.rank() == 1) await_leaving(gang);
  });
  CHECK(failures({outcomes[1]}) == "");
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(
      outcomes[0].message,
      Catch::Contains("ctx.checkpoint(): rank 1 has ended its context, as where its function "
                      "has returned: all ranks call prepare(), backward() and checkpoint() "
                      "equally often (noticed by rank 0 in"));
}

TEST_CASE("the loaders of all ranks see every row once, on the rank's device",
          "[train][context][loader]") {
  CHECK(
      failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
        TestMember member(gang);
        Context ctx(member);
        const Dataset data{torch::arange(10, torch::kFloat32).reshape({10, 1}), torch::arange(10)};
        const auto loader = ctx.loader(data, 2, 1);
        expect(loader.size() == 3, "three batches of at most two rows");
        std::vector<std::int64_t> mine(10, 0);
        std::vector<std::int64_t> sizes;
        for (auto& batch : loader) {
          sizes.push_back(batch.target.size(0));
          expect(batch.data.device() == ctx.device(), "the device");
          for (std::int64_t i = 0; i < batch.target.size(0); ++i) {
            const auto row = batch.target[i].item<std::int64_t>();
            expect(batch.data[i][0].item<float>() == static_cast<float>(row),
                   "a row with its target");
            ++mine[static_cast<std::size_t>(row)];
          }
        }
        expect(sizes == std::vector<std::int64_t>{2, 2, 1}, "the last batch is smaller");
        ctx.communicator().all_reduce(std::span(mine));
        for (auto count : mine) expect(count == 1, "every row once");
      })) == "");
}

TEST_CASE("the order of a run's data follows the run's seed, which is added to the sampler's",
          "[train][context][loader]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& gang) {
          const auto order = [&gang](std::uint64_t run_seed, SamplerOptions options = {}) {
            TestMember member(gang);
            member.run_seed = run_seed;
            Context ctx(member);
            std::vector<std::int64_t> seen;
            for (auto& batch :
                 ctx.loader({torch::zeros({40, 1}), torch::arange(40)}, 8, 0, options)) {
              for (std::int64_t i = 0; i < batch.target.size(0); ++i)
                seen.push_back(batch.target[i].item<std::int64_t>());
            }
            return seen;
          };
          expect(order(5) == order(5), "one order for one seed");
          expect(order(5) != order(6), "another order for another seed");
          expect(order(5, {.seed = 2}) == order(7), "the sum of both seeds");
          expect(order(0) == DistributedSampler(40, 0, 1).indices(),
                 "the sampler's own order without a run's seed");
          expect(order(5, {.shuffle = false}) == order(6, {.shuffle = false}),
                 "no order of a seed without shuffling");
        })) == "");
}

TEST_CASE("a loader refuses what cannot be", "[train][context][loader]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext&) {
          auto refused = [](std::int64_t rows, std::int64_t targets, std::int64_t batch) {
            try {
              Loader({torch::zeros({rows, 1}), torch::zeros({targets})}, {0}, batch, torch::kCPU);
            } catch (const std::invalid_argument&) {
              return true;
            }
            return false;
          };
          expect(refused(3, 4, 1) && refused(3, 3, 0) && !refused(3, 3, 1), "refusals");
        })) == "");
}

TEST_CASE("a rank that leaves before there is a communicator leaves nobody waiting for it",
          "[train][context][failure]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 3));
  const bool throws = GENERATE(false, true);
  const int leaver = GENERATE(0, 1);
  const auto outcomes = gang.run([=](GangContext& context) {
    const Leaving leaving(context, leaver);
    try {
      TestMember member(context);
      Context ctx(member);
      if (ctx.rank() != leaver) return ctx.communicator().barrier();
      if (throws) throw std::out_of_range("no such row");
    } catch (const std::out_of_range&) {
    }
    await_leaving(context);
  });
  CHECK(failures({outcomes[static_cast<std::size_t>(leaver)]}) == "");
  for (int r = 0; r < 3; ++r) {
    if (r == leaver) continue;
    const auto& outcome = outcomes[static_cast<std::size_t>(r)];
    INFO("rank " << r << ": " << outcome.message);
    CHECK(outcome.type == "GangBroken");
    CHECK_THAT(outcome.message,
               Catch::Contains("rank " + std::to_string(leaver) +
                               (throws ? " has left by an exception" : " has ended its context")));
  }
}

TEST_CASE("a checkpoint that is not there ends every rank, not only the one that reads it",
          "[train][context][failure]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    const Leaving leaving(context, 0);
    TestMember member(context, {}, "/no/such/checkpoint");
    try {
      Context ctx(member);
    } catch (const GangBroken&) {
      throw;
    } catch (const std::exception&) {
      await_leaving(context);
      throw;
    }
  });
  CHECK(outcomes[0].type == "other");
  CHECK(outcomes[1].type == "GangBroken");
  CHECK_THAT(outcomes[1].message, Catch::Contains("rank 0 has left by an exception"));
}
