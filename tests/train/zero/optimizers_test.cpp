// ZeRO: the ranks cut an optimizer's state, their gradients and parameters, and train as they would
// without.
#include <troupe/train/context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/output-archive.h>
#include <torch/utils.h>

#include "checkpoint/directory.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"
#include "zero/partition.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
namespace optim = torch::optim;

namespace {

/// Weights and biases in groups with options of their own.
optim::Adam adam_of_two_groups(Net& net) {
  std::vector<torch::Tensor> weights, biases;
  for (auto& item : net->named_parameters())
    (item.key().ends_with("bias") ? biases : weights).push_back(item.value());
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(weights, std::make_unique<optim::AdamOptions>(0.01));
  groups.emplace_back(biases, std::make_unique<optim::AdamOptions>(0.05));
  return optim::Adam(groups);
}

/// With a weight whose elements are not in the order of its rows.
Net strided_net() {
  Net made(kWidths, 5);
  auto& weight = made->layers[0]->weight;
  weight.set_data(weight.detach().t().contiguous().t());
  return made;
}

std::int64_t elements_of_state(const optim::Adam& optimizer) {
  std::int64_t elements = 0;
  for (const auto& [key, state] : optimizer.state()) {
    const auto& adam = static_cast<const optim::AdamParamState&>(*state);
    elements += adam.exp_avg().numel() + adam.exp_avg_sq().numel();
  }
  return elements;
}

}  // namespace

TEST_CASE("each element of each parameter is in the part of exactly one rank (1)",
          "[train][zero][partition]") {
  const auto ranks = GENERATE(1, 2, 3, 7);
  const std::vector<std::int64_t> sizes =
      GENERATE(std::vector<std::int64_t>{1}, std::vector<std::int64_t>{40, 0, 3, 1000, 17},
               std::vector<std::int64_t>{5, 5, 5}, std::vector<std::int64_t>{0});
  const auto cut = partition(sizes, ranks);
  std::vector<std::vector<int>> owners(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    owners[i].assign(static_cast<std::size_t>(sizes[i]), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t elements = 0;
    for (const auto& piece : cut.pieces_of(rank)) {
      elements += piece.count;
      for (auto at = piece.first; at < piece.first + piece.count; ++at)
        ++owners[piece.parameter].at(static_cast<std::size_t>(at));
    }
    CHECK(elements <= cut.part);
  }
  for (const auto& parameter : owners) {
    for (const auto count : parameter) REQUIRE(count == 1);
  }
  for (const auto offset : cut.offsets) CHECK(offset % Partition::kAlignment == 0);  // (2)
  CHECK(cut.part % Partition::kAlignment == 0);
}

TEST_CASE("with ZeRO the ranks train as they do without", "[train][zero]") {
  const int stage = GENERATE(1, 2, 3);
  const auto ranks = GENERATE(2, 3);
  const auto gang = ForkedGang::on_one_node(ranks);
  CHECK(difference(stage, training_with([](Net& net) { return adam(net); }), gang) == "");
  CHECK(difference(stage, training_with([](Net& net) { return adam(net, true); }), gang) == "");
  CHECK(difference(stage, training_with(adamw), gang) == "");
  CHECK(difference(stage, training_with([](Net& net) { return sgd(net); }), gang) == "");
  CHECK(difference(stage, training_with([](Net& net) { return sgd(net, true); }), gang) == "");
  CHECK(difference(stage, training_with(adam_of_two_groups), gang) == "");
}

TEST_CASE("with ZeRO ranks of two nodes train as they do without", "[train][zero]") {
  const int stage = GENERATE(1, 2, 3);
  CHECK(difference(stage, training_with([](Net& net) { return adam(net); }),
                   ForkedGang::on_nodes(4, 2)) == "");
}

TEST_CASE("a rank keeps its part of an optimizer's state alone", "[train][zero]") {
  const int stage = GENERATE(1, 2, 3);
  constexpr int kRanks = 3;
  CHECK(failures(ForkedGang::on_one_node(kRanks).run([stage](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options_with(stage));
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          std::int64_t whole = 0;
          for (const auto& parameter : net->parameters()) whole += 2 * parameter.numel();
          step(ctx, net, optimizer, 0);
          auto kept = elements_of_state(optimizer);
          // The parts are equal but for the gaps between parameters.
          expect(kept <= whole / kRanks + 2 * 16 * static_cast<int>(net->parameters().size()),
                 [&] { return fmt::format("{} of {} elements", kept, whole); });
          ctx.communicator().all_reduce(std::span(&kept, 1));
          expect(kept == whole, "all parts together are the whole state");
          expect(optimizer.param_groups()[0].params()[0].is_same(net->parameters().front()),
                 "the optimizer has the model's parameters between steps");
        })) == "");
}

TEST_CASE("ZeRO trains what is frozen or unused as without it", "[train][zero]") {
  const int stage = GENERATE(1, 2, 3);
  const auto gang = ForkedGang::on_one_node(2);
  const auto frozen = [](Context& ctx) {
    Net made(kWidths, 5);
    made->layers[0]->weight.set_requires_grad(false);
    auto net = ctx.prepare(made);
    auto optimizer = ctx.prepare(adam(net));
    for (std::uint64_t i = 0; i < 3; ++i) step(ctx, net, optimizer, i);
    return values_of(net);
  };
  CHECK(difference(stage, frozen, gang) == "");

  const auto unused = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(adam(net));
    for (std::uint64_t i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      net->layers[0]->forward(rows(4, kWidths.front(), i)).pow(2).mean().backward();
      optimizer.step();
    }
    return values_of(net);
  };
  CHECK(difference(stage, unused, gang, true) == "");
}

TEST_CASE("ZeRO trains what is of float32, strided or accumulated as without it", "[train][zero]") {
  const int stage = GENERATE(1, 2, 3);
  const auto gang = ForkedGang::on_one_node(2);
  const auto of_float32 = [](Context& ctx) {
    Net made(kWidths, 5);
    made->to(torch::kFloat32);
    auto net = ctx.prepare(made);
    auto optimizer = ctx.prepare(adam(net, true));
    for (std::uint64_t i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      const auto seed = 10 * i + static_cast<std::uint64_t>(ctx.rank());
      net->forward(rows(4, kWidths.front(), seed).to(torch::kFloat32)).pow(2).mean().backward();
      optimizer.step();
    }
    return values_of(net);
  };
  CHECK(difference(stage, of_float32, gang) == "");

  const auto strided = [](Context& ctx) {
    auto net = ctx.prepare(strided_net());
    auto optimizer = ctx.prepare(adam(net));
    for (std::uint64_t i = 0; i < 3; ++i) step(ctx, net, optimizer, i);
    expect(net->layers[0]->weight.stride(0) == 1, "the weight keeps its strides");
    return values_of(net);
  };
  CHECK(difference(stage, strided, gang) == "");

  const auto accumulated = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      {
        const auto guard = ctx.no_sync();
        loss_of(net, ctx.rank(), ctx.world_size(), 2 * i).backward();
      }
      optimizer.step([&] {
        auto loss = loss_of(net, ctx.rank(), ctx.world_size(), 2 * i + 1);
        loss.backward();
        return loss;
      });
    }
    return values_of(net);
  };
  CHECK(difference(stage, accumulated, gang) == "");
}

TEST_CASE("with ZeRO a model that was loaded between two steps is trained on", "[train][zero]") {
  const int stage = GENERATE(1, 2, 3);
  const auto loaded = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(adam(net));
    step(ctx, net, optimizer, 0);
    for (auto& parameter : net->parameters())
      parameter.set_data(torch::full_like(parameter, 0.125).detach());
    step(ctx, net, optimizer, 1);
    step(ctx, net, optimizer, 2);
    return values_of(net);
  };
  CHECK(difference(stage, loaded, ForkedGang::on_one_node(2)) == "");
}

TEST_CASE("checkpoints go between any stages of ZeRO and any numbers of ranks",
          "[train][zero][checkpoint]") {
  struct Run {
    int ranks, stage;
  };
  const auto before = GENERATE(Run{3, 1}, Run{2, 0}, Run{3, 2}, Run{3, 3});
  const auto after = GENERATE(Run{2, 1}, Run{1, 0}, Run{2, 0}, Run{2, 2}, Run{2, 3});
  const Scratch scratch;
  const auto storage = (scratch.path() / "run").string();
  const KeptValues last;
  const auto makes_sgd = GENERATE(false, true);
  const auto train = [&](Context& ctx, int epochs) {
    auto made = strided_net();
    auto net = ctx.prepare(made);
    const auto go_on = [&](auto optimizer) {
      // A run that goes on writes what it has loaded before its first step.
      ctx.checkpoint(net, optimizer);
      for (int epoch : ctx.epochs(epochs)) {
        step(ctx, net, optimizer, static_cast<std::uint64_t>(epoch));
        if (epoch == 1) ctx.checkpoint(net, optimizer);
      }
    };
    if (makes_sgd)
      go_on(ctx.prepare(sgd(net)));
    else
      go_on(ctx.prepare(adam(net, true)));
    return values_of(net);
  };
  CHECK(run(2, options_with(0), [&](Context& ctx) { last.keep(ctx, train(ctx, 5)); }) == "");
  CHECK(run(before.ranks, options_with(before.stage), [&](Context& ctx) { train(ctx, 2); },
            {.storage = storage}) == "");
  const auto goes_on = [&](const std::string& from, const std::string& to) {
    return run(
        after.ranks, options_with(after.stage),
        [&](Context& ctx) { last.expect_same_as(train(ctx, 5), 1e-9, "the run that went on"); },
        {.storage = to, .from = latest_checkpoint(from)});
  };
  CHECK(goes_on(storage, storage + "-later") == "");
  CHECK(goes_on(storage + "-later", storage + "-last") == "");
}

TEST_CASE("what ZeRO cannot do is refused with what to do", "[train][zero]") {
  CHECK_THAT(error_of([](Context&) {}, 4),
             Contains("invalid_argument: ContextOptions::zero.stage is 4; it can be 0"));
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(Net(kWidths, 5));
               ctx.prepare(optim::RMSprop(net->parameters()));
             }),
             Contains("ZeRO cannot cut the state of a torch::optim::RMSprop: "
                      "ContextOptions::zero is for Adam, AdamW and SGD"));
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(Net(kWidths, 5));
               auto twice = net->parameters();
               twice.push_back(twice.front());
               ctx.prepare(optim::SGD(twice, optim::SGDOptions(0.1)));
             }),
             Contains("the optimizer has parameter layer0.weight twice"));
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(Net(kWidths, 5));
               auto some = net->parameters();
               if (ctx.rank() == 1) some.pop_back();
               ctx.prepare(optim::SGD(some, optim::SGDOptions(0.1)));
             }),
             Contains("the ranks prepared different optimizers: on rank 1 parameter 5 is "
                      "\"nothing\", on rank 0 it is \"layer2.bias [4] Double in group 0\""));
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(ctx.rank() == 0 ? Net(kWidths, 5) : strided_net());
               ctx.prepare(adam(net));
             }),
             Contains("the ranks prepared different models: on rank 1 parameter 0 is "
                      "\"layer0.weight [40, 6] Double with strides [1, 40]\""));
  CHECK_THAT(error_of([](Context& ctx) {
               Net other(kWidths, 5);
               ctx.prepare(Net(kWidths, 5));
               ctx.prepare(adam(other));
             }),
             Contains("parameter 0 of the optimizer is of no model that was prepared"));
}

TEST_CASE("a model may end while its layers are trained", "[train][zero]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int ranks = GENERATE(1, 2);
  CAPTURE(stage, ranks);
  const auto training = [](bool lives) {
    return [lives](Context& ctx) {
      torch::manual_seed(7);
      torch::nn::Linear first(6, 5), second(5, 4);
      auto whole = ctx.prepare(torch::nn::Sequential(first, second));
      if (!lives) whole = nullptr;
      auto parameters = first->parameters();
      for (const auto& parameter : second->parameters()) parameters.push_back(parameter);
      auto optimizer = ctx.prepare(adam_of(parameters));
      for (std::uint64_t number = 0; number < 3; ++number) {
        optimizer.zero_grad();
        const auto x = part(rows(24, 6, number).to(torch::kFloat32), ctx.rank(), ctx.world_size());
        second->forward(first->forward(x)).square().mean().backward();
        optimizer.step();
      }
      std::vector<torch::Tensor> values;
      for (const auto& parameter : parameters) values.push_back(parameter.detach().clone());
      return values;
    };
  };
  const auto gang = ForkedGang::on_one_node(ranks);
  const KeptValues kept;
  CHECK(run_in(gang, options_with(stage),
               [&](Context& ctx) { kept.keep(ctx, training(true)(ctx)); }) == "");
  CHECK(run_in(gang, options_with(stage), [&](Context& ctx) {
          kept.expect_same_as(training(false)(ctx), 0, "with a model that has ended");
        }) == "");
}

TEST_CASE("what would leave ZeRO's parts of an optimizer is refused", "[train][zero]") {
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(Net(kWidths, 5));
               auto optimizer = ctx.prepare(adam(net));
               auto more = ctx.prepare(Net(kWidths, 6));
               optimizer.add_param_group(optim::OptimizerParamGroup(more->parameters()));
               step(ctx, net, optimizer, 0);
             }),
             Contains("the number of its groups was changed after the optimizer was prepared"));
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(Net(kWidths, 5));
               auto optimizer = ctx.prepare(adam(net));
               torch::serialize::OutputArchive archive;
               optimizer.save(archive);
             }),
             Contains("use ctx.checkpoint(model, optimizer), in which each rank writes its part"));
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(Net(kWidths, 5));
               auto optimizer = ctx.prepare(adam(net));
               step(ctx, net, optimizer, 0);
               auto loss = loss_of(net, ctx.rank(), ctx.world_size());
               optimizer.step();
               loss.backward();
             }),
             Contains("modified by an inplace operation"));
  CHECK_THAT(error_of([](Context& ctx) {
               auto net = ctx.prepare(Net(kWidths, 5));
               auto optimizer = ctx.prepare(adam(net));
               step(ctx, net, optimizer, 0);
               net->to(torch::kFloat32);
               optimizer.step();
             }),
             Contains("other: parameter layer0.weight was given another size, type or device "
                      "after its optimizer was prepared"));
}

TEST_CASE("a checkpoint of an optimizer that was moved out of the prepared one is refused",
          "[train][zero][checkpoint]") {
  const Scratch scratch;
  const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    TestMember member(gang, scratch.path().string());
    Context ctx(member, options_with(1));
    auto net = ctx.prepare(Net(kWidths, 5));
    optim::Adam optimizer = ctx.prepare(adam(net));
    step(ctx, net, optimizer, 0);
    ctx.checkpoint(net, optimizer);
  });
  for (const auto& outcome : outcomes)
    CHECK_THAT(outcome.message, Contains("keep that as `auto optimizer = ctx.prepare(...)`"));
}

TEST_CASE("an optimizer that outlives its Context keeps its state, and makes no step with stage 3",
          "[train][zero]") {
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  CHECK(failures(ForkedGang::on_one_node(2).run([stage](GangContext& gang) {
          TestMember member(gang);
          auto ctx = std::make_unique<Context>(member, options_with(stage));
          auto net = ctx->prepare(Net(kWidths, 5));
          auto optimizer =
              std::make_unique<PreparedOptimizer<optim::Adam>>(ctx->prepare(adam(net)));
          for (std::uint64_t i = 0; i < 2; ++i) step(*ctx, net, *optimizer, i);
          const auto trained = whole_values(*ctx, net);
          const auto elements = elements_of_state(*optimizer);
          ctx.reset();
          optimizer->zero_grad();
          expect(elements > 0 && elements_of_state(*optimizer) == elements, "it has its state");
          if (stage < 3) {
            expect_same(values_of(net), trained, 0, "the values");
          } else {
            expect_in(thrown_by<std::logic_error>([&] { optimizer->step(); }),
                      "after their Context has ended");
          }
        })) == "");
}
