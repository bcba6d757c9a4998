// A rank that fails alone to prepare a model or an optimizer: for lack of memory, at each place in
// turn, by an error of LibTorch, or because it is refused.
#include <troupe/train/context.hpp>
#include <troupe/train/deepspeed.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include "deepspeed/engine_training.hpp"
#include "support/catch.hpp"
#include "support/failures/failing_allocator.hpp"
#include "support/failures/gang_again.hpp"
#include "support/forked_gang.hpp"
#include "support/small_training.hpp"
#include "support/zero_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

constexpr std::size_t kMostFailures = 2'000;

/// What is prepared, and then a step, in which at the latest the ranks wait for each other. Calls
/// `prepared` between.
using Preparing = std::function<void(Context&, Net&, const std::function<void()>& prepared)>;

void train_by_hand(Context& ctx, Net& net, const std::function<void()>& prepared) {
  ctx.prepare(net);
  auto optimizer = ctx.prepare(adam(net));
  prepared();
  step(ctx, net, optimizer, 0);
}

void train_by_engine(Context& ctx, Net& net, const std::function<void()>& prepared) {
  auto engine = deepspeed::initialize(
      ctx, net, engine_training::config_of(ctx.options().zero.stage, ctx.world_size()));
  prepared();
  for (int micro = 0; micro < engine_training::kAccumulated; ++micro) {
    engine.backward(engine.forward([&] { return loss_of(net, ctx.rank(), ctx.world_size()); }));
    engine.step();
  }
}

/// "": it throws nothing.
std::string error_in(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Whether reading a model ends this process is what this asks: with stage 3 a parameter may have
/// no values.
void read_values(const Net& net) {
  error_in([&] {
    for (const auto& parameter : net->parameters()) parameter.sum();
  });
}

/// One round, in which rank 1 fails at an allocation; 0: at none. -> this rank's error.
std::string error_of_round(GangContext& gang, const ContextOptions& options,
                           const Preparing& training, std::size_t fails_at) {
  auto& allocator = FailingAllocator::installed();
  TestMember member(gang);
  Context ctx(member, options);
  Net net(kWidths, 5);
  if (gang.rank() == 1) allocator.fail_at(fails_at);
  const auto error = error_in([&] { training(ctx, net, [&] { allocator.fail_at(0); }); });
  allocator.fail_at(0);
  read_values(net);
  // So that no error is that another rank has left.
  gang.rendezvous().set(fmt::format("rank {} has ended", gang.rank()), "");
  gang.rendezvous().get(fmt::format("rank {} has ended", 1 - gang.rank()), 2 * test::kGuard);
  return error;
}

void expect_errors_of_all_rounds(GangContext& gang, const ContextOptions& options,
                                 const Preparing& training) {
  const auto& allocator = FailingAllocator::installed();
  std::string error = "none yet";
  std::size_t round = 0;
  for (; !error.empty(); ++round) {
    expect(round < kMostFailures, "in the end no allocation fails");
    const auto living = allocator.living();
    GangAgain again(gang, round);
    error = error_of_round(again, options, training, round);
    if (round == 0) {
      expect(error.empty(), "a training without a failure: " + error);
      error = "none yet";
      continue;  // LibTorch keeps some of its first values
    }
    expect(error.empty() || error.find(FailingAllocator::kNoMemory) != std::string::npos,
           [&] { return fmt::format("round {} names the cause: {}", round, error); });
    expect(allocator.living() == living, [&] {
      return fmt::format("round {} leaves {} pieces of memory behind, of an error {}", round,
                         allocator.living() - living, error);
    });
  }
  expect(round > 2, "some allocations have failed");
}

/// A model that cannot be moved to a device.
struct Immovable : torch::nn::Module {
  Immovable() { register_parameter("weight", torch::ones({4})); }
  void to(torch::Device, bool) override { TORCH_CHECK(false, "it cannot be moved"); }
};

/// What rank 0 of two is told in prepare() where rank 1 has ended in its own by `model`, the first
/// that it prepares or not.
std::string told_of(const std::function<std::shared_ptr<torch::nn::Module>()>& model,
                    bool is_first) {
  const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    const Leaving leaving(gang, 1);
    try {
      TestMember member(gang);
      Context ctx(member);
      if (!is_first) ctx.prepare(Net(kWidths, 5));
      ctx.prepare(ctx.rank() == 1 ? model() : Net(kWidths, 5).ptr());
    } catch (const GangBroken&) {
      throw;
    } catch (const std::exception&) {
      await_leaving(gang);
    }
  });
  CHECK(failures({outcomes[1]}) == "");
  CHECK(outcomes[0].type == "GangBroken");
  return outcomes[0].message;
}

}  // namespace

TEST_CASE("a rank that fails alone in LibTorch is told of on all ranks, without LibTorch's stack",
          "[train][prepare][failure]") {
  const bool is_first = GENERATE(true, false);
  CAPTURE(is_first);
  const auto told = told_of([] { return std::make_shared<Immovable>(); }, is_first);
  CHECK_THAT(told, Catch::Contains("it cannot be moved (noticed by rank 0 in"));
}

TEST_CASE("a rank that is refused alone tells the others why where its function ends by that",
          "[train][prepare][failure]") {
  const bool is_first = GENERATE(true, false);
  CAPTURE(is_first);
  const auto told = told_of([] { return std::shared_ptr<torch::nn::Module>(); }, is_first);
  CHECK_THAT(
      told,
      Catch::Contains("by an exception") &&
          Catch::Contains(
              "; before that, what it prepared last was refused: prepare: the model is empty"));
}

TEST_CASE("an optimizer with parameters of no prepared model alone is refused on every rank",
          "[train][prepare]") {
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([ranks](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options_with(0));
          Net net(kWidths, 5);
          const auto prepare = [&] { ctx.prepare(sgd(net)); };
          if (ranks == 1) return prepare();
          expect_in(thrown_by<std::invalid_argument>(prepare),
                    "the optimizer has 6 parameters, and none is of a model that was prepared: "
                    "their gradients would not be averaged, and each rank would train alone. "
                    "Prepare the model before its optimizer: `auto model = ctx.prepare(...)`");
          ctx.prepare(net);
          prepare();
          auto own = torch::ones({3}, torch::requires_grad());
          ctx.prepare(torch::optim::SGD({own, net->parameters().front()}, 0.1));
        })) == "");
}

TEST_CASE("a rank without memory for a part of what it prepares is told of on all ranks",
          "[train][prepare][failure]") {
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          expect_errors_of_all_rounds(gang, options_with(stage), train_by_hand);
        })) == "");
}

TEST_CASE("a rank without memory for a part of its engine is told of on all ranks",
          "[train][prepare][failure]") {
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          const auto config = engine_training::config_of(stage, 2);
          expect_errors_of_all_rounds(gang, engine_training::options_for(config), train_by_engine);
        })) == "");
}
