// ZeRO, stage 3: a rank has one part of the parameters, and the others' while they are used.
#include <troupe/train/context.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"
#include "zero/gathering/gathering.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// How many buffers of parameters are here.
std::size_t whole_buffers(const torch::nn::Module& module) {
  std::set<const void*> buffers;
  for (const auto& parameter : module.parameters()) {
    if (parameter.storage().nbytes() > 0)
      buffers.insert(parameter.storage().unsafeGetStorageImpl());
  }
  return buffers.size();
}

/// Layers whose operators take parameters in every way: alone, in lists, as optional ones, in views
/// that backward keeps.
struct ManyLayersImpl : torch::nn::Module {
  ManyLayersImpl() {
    torch::manual_seed(3);
    const std::int64_t width = 12;
    words = register_module("words", torch::nn::Embedding(20, width));
    memory = register_module(
        "memory",
        torch::nn::LSTM(torch::nn::LSTMOptions(width, width).num_layers(2).batch_first(true)));
    attention = register_module("attention", torch::nn::MultiheadAttention(width, 3));
    convolution = register_module(
        "convolution", torch::nn::Conv1d(torch::nn::Conv1dOptions(width, 8, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    scale = register_parameter("scale", torch::ones({8, 1}));
    last = register_module("last", torch::nn::Bilinear(8, 8, 5));
    to(torch::kFloat64);
  }
  torch::Tensor forward(const torch::Tensor& text) {
    auto x = std::get<0>(memory->forward(words->forward(text)));  // [row, place, width]
    const auto places = x.transpose(0, 1);
    x = x + std::get<0>(attention->forward(places, places, places)).transpose(0, 1);
    x = norm->forward(convolution->forward(x.transpose(1, 2))) * scale;  // [row, 8, place]
    x = x.mean(2);
    return last->forward(x, torch::einsum("bi,ij->bj", {x, last->weight[0]}));
  }
  torch::nn::Embedding words = nullptr;
  torch::nn::LSTM memory = nullptr;
  torch::nn::MultiheadAttention attention = nullptr;
  torch::nn::Conv1d convolution = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::Tensor scale;
  torch::nn::Bilinear last = nullptr;
};
TORCH_MODULE(ManyLayers);

}  // namespace

TEST_CASE("a rank keeps its part of the parameters alone, and two buffers while they are used (2)",
          "[train][zero][parameters]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options_with(3));
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          expect(whole_buffers(*net) == 0, "none is here before it is used");
          for (std::uint64_t i = 0; i < 2; ++i) {
            auto x = rows(kRows, kWidths.front(), i);
            for (auto& layer : net->layers) {
              x = torch::tanh(layer->forward(x));
              expect(whole_buffers(*net) <= Gathering::kKept, "in forward");
            }
            optimizer.zero_grad();
            x.sum().backward();
            expect(whole_buffers(*net) == 0, "none after a backward");
            optimizer.step();
            expect(whole_buffers(*net) == 0, "none after a step");
          }
        })) == "");
}

TEST_CASE("layers of many kinds train as they do without ZeRO", "[train][zero][parameters]") {
  const auto ranks = GENERATE(2, 3);
  const auto training = [](Context& ctx) {
    auto net = ctx.prepare(ManyLayers());
    auto optimizer =
        ctx.prepare(torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.01)));
    for (int i = 0; i < 4; ++i) {
      torch::manual_seed(100 + static_cast<std::uint64_t>(10 * i + ctx.rank()));
      const auto text = torch::randint(20, {4, 6});
      optimizer.zero_grad();
      net->forward(text).square().mean().backward();
      ctx.clip_grad_norm(optimizer, 1);
      optimizer.step();
    }
    std::vector<torch::Tensor> values;
    for (const auto& parameter : net->parameters()) values.push_back(parameter.detach().clone());
    return values;
  };
  CHECK(difference(3, training, ForkedGang::on_one_node(ranks), false, 1e-12) == "");
}

TEST_CASE("graphs that backward goes through twice, or that it makes, train as without ZeRO",
          "[train][zero][parameters]") {
  const auto twice = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      const auto loss = rank_loss(ctx, net, i);
      {
        const auto guard = ctx.no_sync();
        loss.backward({}, true);
      }
      const auto slopes = torch::autograd::grad({loss}, net->parameters(), {}, {}, true);
      auto penalty = loss;
      for (const auto& slope : slopes) penalty = penalty + slope.square().sum();
      penalty.backward();
      optimizer.step();
    }
    return values_of(net);
  };
  CHECK(difference(3, twice, ForkedGang::on_one_node(2), false, 1e-12) == "");
}

TEST_CASE("ranks that use other layers before they meet elsewhere do not wait for each other",
          "[train][zero][parameters]") {
  const Scratch scratch;
  const auto storage = scratch.path().string();
  CHECK(failures(ForkedGang::on_one_node(3).run([&](GangContext& gang) {
          TestMember member(gang, storage);
          Context ctx(member, options_with(3));
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          const auto uses_own_layers = [&] {
            const torch::NoGradGuard no_grad;
            for (int i = 0; i < ctx.rank(); ++i) {
              for (std::size_t at = 3; at-- > 0;) (net->layers[at]->weight * 2).sum();
            }
          };
          for (std::uint64_t i = 0; i < 2; ++i) {
            optimizer.zero_grad();
            uses_own_layers();
            rank_loss(ctx, net, i).backward();
            uses_own_layers();
            ctx.clip_grad_norm(optimizer, 1);
            uses_own_layers();
            optimizer.step();
            uses_own_layers();
            ctx.checkpoint(net, optimizer);
            uses_own_layers();
            ctx.report({{"loss", 1.0}});
            uses_own_layers();
            {
              const auto whole = ctx.gathered(net);
              uses_own_layers();
            }
            uses_own_layers();
            optimizer.zero_grad();
            net = ctx.prepare(net);
            optimizer = ctx.prepare(adam(net));
          }
        })) == "");
}

TEST_CASE("a checkpoint of modules that have prepared ones in them, or are in one, has all values",
          "[train][zero][parameters][checkpoint]") {
  const Scratch scratch;
  const auto storage = scratch.path().string();
  const auto prepares = [](Context& ctx) {
    torch::nn::ModuleDict all;
    all->register_module("first", ctx.prepare(Net(kWidths, 5)).ptr());
    all->register_module("second", ctx.prepare(Net(kWidths, 6)).ptr());
    return all;
  };
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang, storage);
          Context ctx(member, options_with(3));
          auto all = prepares(ctx);
          auto first = std::dynamic_pointer_cast<NetImpl>(all->named_children()["first"]);
          const auto made = ctx.checkpoint(all, first->layers[1]).directory;
          const auto whole = ctx.gathered(first->layers[1]);
          expect(first->layers[1]->weight.storage().nbytes() > 0, "a layer is gathered");
          if (ctx.rank() != 0) return;
          torch::nn::ModuleDict read;
          read->register_module("first", Net(kWidths, 1).ptr());
          read->register_module("second", Net(kWidths, 1).ptr());
          troupe::train::load(read, made);
          const Net first_made(kWidths, 5), second_made(kWidths, 6);
          auto expected = first_made->parameters();
          for (const auto& parameter : second_made->parameters()) expected.push_back(parameter);
          expect_same(read->parameters(), expected, 0, "both models");
          torch::nn::Linear layer(kWidths[1], kWidths[2]);
          layer->to(torch::kFloat64);
          troupe::train::load(layer, made, 1);
          expect(torch::equal(layer->weight, first_made->layers[1]->weight), "a layer");
        })) == "");
}

TEST_CASE("a rank that evaluates alone gets what it needs from ranks that train on",
          "[train][zero][parameters]") {
  const auto evaluates = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(adam(net));
    for (std::uint64_t i = 0; i < 4; ++i) {
      step(ctx, net, optimizer, i);
      if (ctx.rank() != 1) continue;
      const torch::NoGradGuard no_grad;
      for (int batch = 0; batch < 3; ++batch) net->forward(rows(5, kWidths.front(), 7));
    }
    ctx.report({{"loss", 1.0}});
    const auto whole = ctx.gathered(net);
    if (ctx.rank() == 1) net->forward(rows(5, kWidths.front(), 7));
    return values_of(net);
  };
  CHECK(difference(3, evaluates, ForkedGang::on_one_node(3)) == "");
}

TEST_CASE("what all ranks write to parameters between two steps stays",
          "[train][zero][parameters]") {
  const auto writes = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 0; i < 4; ++i) {
      step(ctx, net, optimizer, i);
      const torch::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) parameter.clamp_(-0.1, 0.1);
      if (i == 2) torch::nn::init::constant_(net->layers[1]->bias, 0.25);
      // In other orders, so that some ranks have buffers to which they wrote, and others ask for
      // them.
      for (std::size_t at = 0; at < 3; ++at) {
        const auto& weight = net->layers[ctx.rank() == 0 ? 2 - at : at]->weight;
        expect(weight.abs().max().item<double>() <= 0.1, "all parts were written to");
      }
    }
    return values_of(net);
  };
  CHECK(difference(3, writes, ForkedGang::on_one_node(2)) == "");
}

TEST_CASE("a parameter that the program puts elsewhere before each step trains on",
          "[train][zero][parameters]") {
  const bool negates = GENERATE(false, true);  // the values in place, by LibTorch's bit
  const auto replaces = [negates](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 0; i < 9; ++i) {
      for (auto& parameter : net->layers[i / 3]->parameters()) {
        const torch::NoGradGuard no_grad;
        const auto values = parameter.detach();
        parameter.set_data(negates ? torch::_neg_view(values) : values * 1);
      }
      step(ctx, net, optimizer, i);
    }
    return values_of(net);
  };
  CHECK(difference(3, replaces, ForkedGang::on_one_node(2)) == "");
}

TEST_CASE("what one rank writes alone is an error, but under a guard",
          "[train][zero][parameters]") {
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   {
                     const torch::NoGradGuard no_grad;
                     if (ctx.rank() == 1) net->layers[1]->weight.fill_(5);
                   }
                   rank_loss(ctx, net, 0).backward();
                 },
                 3),
             Contains("or written to other parameters") && Contains("under ctx.gathered(model)"));
  // As averaged weights are put in the place of the model's to evaluate.
  const auto evaluates_others = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(adam(net));
    for (std::uint64_t i = 0; i < 3; ++i) {
      step(ctx, net, optimizer, i);
      const auto whole = ctx.gathered(net);
      if (ctx.rank() != 0) continue;
      const torch::NoGradGuard no_grad;
      const auto kept = values_of(net);
      for (auto& parameter : net->parameters()) parameter.fill_(0.5);
      expect(net->forward(torch::ones({1, kWidths.front()}, torch::kFloat64)).min().item<double>() >
                 0.5,
             "all values were written");
      for (std::size_t at = 0; at < kept.size(); ++at) net->parameters()[at].copy_(kept[at]);
    }
    return values_of(net);
  };
  CHECK(difference(3, evaluates_others, ForkedGang::on_one_node(2)) == "");
}

TEST_CASE("while parameters are gathered their memory can be read, and no step is taken",
          "[train][zero][parameters]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options_with(3));
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(sgd(net));
          const auto* weight = &net->layers[0]->weight;
          {
            const auto whole = ctx.gathered(net);
            const Net own(kWidths, 5);
            expect(*weight->data_ptr<double>() == *own->layers[0]->weight.data_ptr<double>(),
                   "the first element");
            rank_loss(ctx, net, 0).backward();
            expect_in(thrown_by<std::logic_error>([&] { optimizer.step(); }),
                      "end the guard before");
          }
          optimizer.step();
          expect(whole_buffers(*net) == 0, "the guard has ended");
        })) == "");
}

TEST_CASE("a model that is prepared again trains on, and its old optimizer is refused",
          "[train][zero][parameters]") {
  const auto again = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    {
      auto optimizer = ctx.prepare(sgd(net));
      step(ctx, net, optimizer, 0);
      optimizer.zero_grad();
    }
    net->layers[0]->weight.set_requires_grad(false);
    auto& weight = net->layers[1]->weight;
    weight.set_data(torch::_neg_view(weight.detach()));  // which is not in the buffer's place
    net = ctx.prepare(net);
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 1; i < 3; ++i) step(ctx, net, optimizer, i);
    return values_of(net);
  };
  CHECK(difference(3, again, ForkedGang::on_one_node(2)) == "");
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto optimizer = ctx.prepare(sgd(net));
                   net = ctx.prepare(net);
                   optimizer.step();
                 },
                 3),
             Contains("make and prepare the optimizer again too"));
}

TEST_CASE("parameters that can not come are an error that says why", "[train][zero][parameters]") {
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto other = ctx.prepare(Net(kWidths, 6));
                   auto first = ctx.prepare(sgd(net)), second = ctx.prepare(sgd(other));
                   (ctx.rank() == 0 ? first : second).step();
                   rank_loss(ctx, net, 1);
                 },
                 3),
             Contains("rank 1 has made other steps") && Contains("all ranks call step() as often"));
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   const torch::NoGradGuard no_grad;
                   auto net = ctx.prepare(Net(kWidths, 5));
                   if (ctx.rank() == 1) ctx.prepare(net);
                   for (int i = 0; i < 2; ++i) ctx.report({});  // as often as prepare() meets
                   net->forward(rows(2, kWidths.front(), 1));
                 },
                 3),
             Contains("prepared other models again") && Contains("at the same places"));
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    TestMember member(gang);
    Net net(kWidths, 5);
    {
      Context ctx(member, options_with(3));
      ctx.prepare(net);
    }
    net->forward(rows(2, kWidths.front(), 1));
  });
  for (const auto& outcome : outcomes)
    CHECK_THAT(outcome.message, Contains("the Context that brings them has ended"));
}
