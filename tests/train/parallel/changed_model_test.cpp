// Models that change after they were prepared, and models that cannot be prepared.
#include <troupe/train/context.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

torch::Tensor changed_loss(Net& net, int rank) {
  const auto type = net->layers[0]->weight.scalar_type();
  return net->forward(rows(6, kNarrowWidths.front(), 3 + static_cast<std::uint64_t>(rank)).to(type))
      .square()
      .mean();
}

/// What a backward throws; "": nothing.
std::string backward_error(const torch::Tensor& loss) {
  try {
    loss.backward();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void expect_error(const torch::Tensor& loss, const std::string& text) {
  const auto error = backward_error(loss);
  expect(error.find(text) != std::string::npos, "backward says: " + text + "; it says: " + error);
}

/// Puts another layer in the place of one.
void replace_layer(Net& net, std::size_t layer) {
  const auto& before = net->layers[layer]->options;
  torch::nn::Linear other(before.in_features(), before.out_features());
  other->to(torch::kFloat64);
  net->layers[layer] = net->replace_module("layer" + std::to_string(layer), other);
}

/// The average of the gradients that the ranks have of their own.
void expect_averaged(Context& ctx, Net& net) {
  net->zero_grad();
  changed_loss(net, ctx.rank()).backward();
  Net reference(kNarrowWidths);
  const auto parameters = net->parameters(), own = reference->parameters();
  {
    const torch::NoGradGuard no_grad;
    reference->to(parameters[0].scalar_type());
    for (std::size_t i = 0; i < own.size(); ++i) own[i].copy_(parameters[i]);
  }
  for (int rank = 0; rank < ctx.world_size(); ++rank)
    (changed_loss(reference, rank) / ctx.world_size()).backward();
  for (std::size_t i = 0; i < own.size(); ++i)
    expect(torch::allclose(parameters[i].grad(), own[i].grad(), 1e-5, 1e-6),
           "an averaged gradient");
}

/// What two ranks are told whose models `change` has changed after they were prepared.
void expect_names_after(const ContextOptions& options, const std::function<void(Net&)>& change,
                        const std::string& named) {
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options);
          auto net = ctx.prepare(Net(kNarrowWidths));
          expect(backward_error(changed_loss(net, ctx.rank())).empty(),
                 "a backward of the model as it was");
          net->zero_grad();
          change(net);
          for (int step = 0; step < 2; ++step) {
            net->zero_grad();
            expect_error(changed_loss(net, ctx.rank()), named);
          }
          net->zero_grad();
          ctx.prepare(net);
          if (options.zero.stage < 2) expect_averaged(ctx, net);
        })) == "");
}

}  // namespace

TEST_CASE("a parameter that is trained and was frozen is named, and averaged once prepared again",
          "[train][changed_model]") {
  const bool all_frozen = GENERATE(false, true);
  CHECK(failures(ForkedGang::on_one_node(2).run([all_frozen](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          Net net(kNarrowWidths);
          auto freeze = [&](bool frozen) {
            net->layers[0]->weight.set_requires_grad(!frozen);
            if (all_frozen) {
              for (auto& parameter : net->parameters()) parameter.set_requires_grad(!frozen);
            }
          };
          freeze(true);
          ctx.prepare(net);
          if (!all_frozen) changed_loss(net, ctx.rank()).backward();
          freeze(false);
          for (int step = 0; step < 2; ++step) {
            expect_error(changed_loss(net, ctx.rank()),
                         " is trained now, and was frozen when its model was prepared");
          }
          ctx.prepare(net);
          for (int step = 0; step < 2; ++step) expect_averaged(ctx, net);
          // And back, as for a head that is trained alone.
          freeze(true);
          ctx.prepare(net);
          if (!all_frozen)
            expect(backward_error(changed_loss(net, ctx.rank())).empty(), "the head is trained");
        })) == "");
}

TEST_CASE(
    "a model of another type than it was prepared with is named, and averaged once prepared again",
    "[train][changed_model]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          expect_averaged(ctx, net);
          net->to(torch::kFloat32);
          net->zero_grad();
          expect_error(changed_loss(net, ctx.rank()),
                       "was given another type or device after its model");
          {
            const auto guard = ctx.no_sync();
            expect_error(changed_loss(net, ctx.rank()), "was given another type or device after");
          }
          ctx.prepare(net);
          expect_averaged(ctx, net);
        })) == "");
}

TEST_CASE("what a model became since it was prepared is named at each stage of ZeRO",
          "[train][changed_model][zero]") {
  const int stage = GENERATE(1, 2, 3);
  const bool is_retyped = GENERATE(false, true);
  const std::string named = is_retyped ? "was given another type or device after its model"
                                       : " is trained now, and was frozen when its model was";
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, {.zero = {.stage = stage}});
          Net net(kNarrowWidths);
          if (!is_retyped) net->layers[0]->weight.set_requires_grad(false);
          ctx.prepare(net);
          expect(backward_error(changed_loss(net, ctx.rank())).empty(),
                 "a backward of the model as it was");
          net->zero_grad();
          if (is_retyped)
            net->to(torch::kFloat32);
          else
            net->layers[0]->weight.set_requires_grad(true);
          for (int step = 0; step < 2; ++step) expect_error(changed_loss(net, ctx.rank()), named);
        })) == "");
}

TEST_CASE("a parameter of a layer that was replaced is named, and averaged once prepared again",
          "[train][changed_model]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const bool find_unused = GENERATE(false, true);
  CAPTURE(stage, find_unused);
  expect_names_after(
      {.data_parallel = {.find_unused_parameters = find_unused}, .zero = {.stage = stage}},
      [](Net& net) { replace_layer(net, 1); },
      "parameter layer1.weight is another tensor than its model had when it was prepared");
}

TEST_CASE("a layer that was registered after its model was prepared is named",
          "[train][changed_model]") {
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, {.zero = {.stage = stage}});
          auto net = ctx.prepare(Net(kNarrowWidths));
          torch::nn::Linear head(kNarrowWidths.back(), 1);
          head->to(torch::kFloat64);
          net->register_module("head", head);
          const auto loss = [&] {
            return head->forward(net->forward(rows(6, kNarrowWidths.front(), 3))).square().mean();
          };
          expect_error(loss(), "parameter head.weight is another tensor than its model had");
          net->zero_grad();
          // Not where its gradient is averaged: as that of a model of its own.
          ctx.prepare(head);
          const auto error = backward_error(loss());
          expect(error.empty(), "the head is a model of its own: " + error);
        })) == "");
}

TEST_CASE("a copy that was registered beside the trained layers is to be frozen, and then goes by",
          "[train][changed_model]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          Net average(kNarrowWidths);
          net->register_module("average", average.ptr());
          expect_error(changed_loss(net, ctx.rank()),
                       "parameter average.layer0.weight is another tensor than its model had when "
                       "it was prepared, so that its gradient would not be averaged over the "
                       "ranks: prepare the model again after such a change, or freeze the "
                       "parameter (requires_grad_(false)) if it is to stay as it is");
          net->zero_grad();
          for (auto& parameter : average->parameters()) parameter.requires_grad_(false);
          const auto error = backward_error(changed_loss(net, ctx.rank()));
          expect(error.empty(), "the frozen copy goes by: " + error);
        })) == "");
}

TEST_CASE("where one rank has replaced a layer, all are told which", "[train][changed_model]") {
  const int stage = GENERATE(0, 2, 3);
  CAPTURE(stage);
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, {.zero = {.stage = stage}});
          auto net = ctx.prepare(Net(kNarrowWidths));
          if (ctx.rank() == 1) replace_layer(net, 0);
          expect_error(changed_loss(net, ctx.rank()),
                       "parameter layer0.weight is another tensor than");
        })) == "");
}

TEST_CASE("a parameter whose layer was assigned another tensor is named as without a gradient",
          "[train][changed_model]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          auto& weight = net->layers[0]->weight;
          weight = weight.detach().clone().requires_grad_(true);
          expect_error(changed_loss(net, ctx.rank()),
                       "got no gradient in this backward: layer0.weight");
        })) == "");
}

TEST_CASE("parameters whose storage was replaced are averaged", "[train][changed_model]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          for (auto& parameter : net->parameters())
            parameter.set_data(torch::full_like(parameter, 0.25));
          expect_averaged(ctx, net);
        })) == "");
}

TEST_CASE("a model that is prepared again keeps its place in checkpoints and loads nothing",
          "[train][changed_model]") {
  const Scratch folder;
  auto path = [&] { return (folder.path() / "checkpoint_0").string(); };
  CHECK(failures(ForkedGang::on_one_node(1).run([&](GangContext& gang) {
          TestMember member(gang, folder.path().string());
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          auto other = ctx.prepare(Net(kNarrowWidths, 2));
          ctx.prepare(net);
          const auto written = ctx.checkpoint(net, other);
          std::filesystem::rename(written.directory, path());
        })) == "");
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          TestMember member(gang, "", path());
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths, 7));
          {
            const torch::NoGradGuard no_grad;
            for (auto& parameter : net->parameters()) parameter.fill_(0.5);
          }
          ctx.prepare(net);
          auto other = ctx.prepare(Net(kNarrowWidths, 7));
          const Net written(kNarrowWidths, 2);
          expect(net->parameters()[0].min().item<double>() == 0.5, "nothing was loaded again");
          expect(torch::equal(other->parameters()[0], written->parameters()[0]), "the second file");
        })) == "");
}

TEST_CASE("a model that cannot be averaged is refused, and the context can go on",
          "[train][changed_model]") {
  struct Odd : torch::nn::Module {
    explicit Odd(torch::ScalarType type) {
      register_parameter("fine", torch::ones({4}, torch::kFloat64));
      register_parameter("odd", torch::ones({4}, torch::kFloat32).to(type));
    }
  };
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          const auto odd = std::make_shared<Odd>(torch::kComplexFloat);
          expect_in(thrown_by<std::exception>([&] { ctx.prepare(odd); }), "ComplexFloat");
          expect_averaged(ctx, net);
        })) == "");
}

TEST_CASE("a model is not prepared inside of a backward", "[train][changed_model]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto net = ctx.prepare(Net(kNarrowWidths));
          Net other(kNarrowWidths);
          std::string error;
          const auto hook = net->layers[0]->weight.register_hook([&](const at::Tensor&) {
            try {
              ctx.prepare(other);
            } catch (const std::exception& refused) {
              error = refused.what();
            }
          });
          changed_loss(net, ctx.rank()).backward();
          net->layers[0]->weight.remove_hook(hook);
          expect(error.find("while a backward runs") != std::string::npos, "a refusal: " + error);
          expect_averaged(ctx, net);
          ctx.prepare(other);
          expect_averaged(ctx, other);
        })) == "");
}

TEST_CASE("a model whose second prepare is refused is not trained without averages",
          "[train][changed_model]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          Net net(kNarrowWidths);
          net->layers[0]->weight.set_requires_grad(false);
          ctx.prepare(net);
          net->layers[0]->weight.set_requires_grad(gang.rank() == 1);
          expect_in(thrown_by<std::invalid_argument>([&] { ctx.prepare(net); }), "layer0.weight");
          net->layers[0]->weight.set_requires_grad(true);
          expect_error(changed_loss(net, ctx.rank()), "is trained now, and was frozen");
          net->zero_grad();
          ctx.prepare(net);
          expect_averaged(ctx, net);
        })) == "");
}
