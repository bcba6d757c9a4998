// Files of models that a gang trains, at every stage of ZeRO.
#include <string>

#include <troupe/train/safetensors.hpp>

#include "support/catch.hpp"
#include "support/zero_training.hpp"

namespace safetensors = troupe::train::safetensors;
using namespace troupe::testing;
using troupe::GangContext;
using troupe::train::Context;

TEST_CASE("a model that a gang trained is saved with all its values and loaded into another model",
          "[train][safetensors][zero]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const Scratch scratch;
  const auto file = scratch.path() / "net.safetensors";
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options_with(stage));
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          step(ctx, net, optimizer, 0);
          std::vector<torch::Tensor> trained;
          {
            const auto whole = ctx.gathered(net);
            if (ctx.rank() == 0) safetensors::save(net, file);
            trained = values_of(net);
          }
          ctx.report({{"saved", 1.0}});
          Net other(kWidths, 7);
          if (ctx.rank() == 0) safetensors::load(other, file);
          other = ctx.prepare(other);  // gives rank 1 the values
          const auto whole = ctx.gathered(other);
          expect_same(values_of(other), trained, 0, "what was loaded");
        })) == "");
}

TEST_CASE("what all ranks load into a prepared model is what they train on",
          "[train][safetensors][zero]") {
  const int stage = GENERATE(1, 2, 3);
  const Scratch scratch;
  const auto file = scratch.path() / "net.safetensors";
  const auto loads = [&](Context& ctx) {
    if (ctx.rank() == 0) safetensors::save(Net(kWidths, 9), file);
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    step(ctx, net, optimizer, 0);
    {
      const auto whole = ctx.gathered(net);
      safetensors::load(net, file);
      expect_same(values_of(net), Net(kWidths, 9)->parameters(), 0, "what was loaded");
    }
    step(ctx, net, optimizer, 1);
    const auto whole = ctx.gathered(net);
    return values_of(net);
  };
  CHECK(difference(stage, loads, ForkedGang::on_one_node(2)) == "");
}

TEST_CASE("values that a rank does not have are neither saved nor loaded",
          "[train][safetensors][zero]") {
  const Scratch scratch;
  const auto file = scratch.path() / "net.safetensors";
  const auto with = [&](auto use) {
    return error_of(
        [&](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          step(ctx, net, optimizer, 0);
          use(net);
        },
        3);
  };
  const std::string told =
      "other: the values of 'layer0.bias' are not here: with stage 3 of "
      "ZeRO, hold ctx.gathered(model) on all ranks while the model is saved "
      "or loaded";
  CHECK(with([&](Net& net) { safetensors::save(net, file); }) == told);
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(with([&](Net& net) {
          safetensors::save(Net(kWidths, 1), file);
          safetensors::load(net, file);
        }) == told);
}
