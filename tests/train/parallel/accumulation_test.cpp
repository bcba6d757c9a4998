// Gradients that come under no_sync, or not at all: each rank has the average of what all have
// accumulated.
#include <troupe/train/context.hpp>

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// Passes a gradient on only while it is open; else the gradient is undefined, which autograd takes
/// for zero.
struct Gate : torch::autograd::Function<Gate> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& weight, bool is_open) {
    context->saved_data["is_open"] = is_open;
    return weight.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (!context->saved_data["is_open"].toBool()) return {torch::Tensor(), torch::Tensor()};
    return {gradients[0], torch::Tensor()};
  }
};

/// Two weights; the gradient of each is what it is multiplied by.
struct TwoWeights : torch::nn::Module {
  TwoWeights() {
    a = register_parameter("a", torch::zeros({3}, torch::kFloat64));
    b = register_parameter("b", torch::zeros({3}, torch::kFloat64));
  }
  torch::Tensor a;
  torch::Tensor b;
};

void weighted_backward(const torch::Tensor& weight, double x) { (weight * x).sum().backward(); }

void expect_gradient(const torch::Tensor& weight, double value, const std::string& of) {
  expect(weight.grad().defined(), of + " has a gradient");
  expect(torch::equal(weight.grad(), torch::full({3}, value, torch::kFloat64)), [&] {
    return fmt::format("the gradient of {} is {}, it is {}", of, value,
                       weight.grad()[0].item<double>());
  });
}

ContextOptions accumulating_options(bool find_unused) {
  ContextOptions options;
  options.data_parallel.find_unused_parameters = find_unused;
  return options;
}

/// A gradient as another tensor: over the same memory, negated there by LibTorch's bit, or a copy.
torch::Tensor another_object(const torch::Tensor& gradient) { return gradient.detach(); }
torch::Tensor with_negative_bit(const torch::Tensor& gradient) {
  return torch::_neg_view(gradient.detach());
}
torch::Tensor in_other_memory(const torch::Tensor& gradient) { return gradient.clone(); }

/// What a rank of two does, with a model and what it feeds: 1 and 2, so that averages are 1.5.
struct Rank {
  Rank(GangContext& gang, bool find_unused)
      : member(gang),
        ctx(member, accumulating_options(find_unused)),
        model(ctx.prepare(std::make_shared<TwoWeights>())),
        own(ctx.rank() + 1.0) {}
  TestMember member;
  Context ctx;
  std::shared_ptr<TwoWeights> model;
  double own;
};

}  // namespace

TEST_CASE("of guards inside of each other the last one that ends counts", "[train][accumulation]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Rank rank(gang, true);
          auto outer = std::make_unique<Context::NoSync>(rank.ctx);
          {
            const auto inner = rank.ctx.no_sync();
            weighted_backward(rank.model->a, rank.own);
          }
          weighted_backward(rank.model->a, rank.own);
          expect_gradient(rank.model->a, 2 * rank.own, "a under the outer guard");
          auto second = std::make_unique<Context::NoSync>(rank.ctx);
          outer.reset();
          weighted_backward(rank.model->a, rank.own);
          expect_gradient(rank.model->a, 3 * rank.own, "a under the second guard");
          // A model that is prepared under a guard is under it.
          auto late = rank.ctx.prepare(std::make_shared<TwoWeights>());
          weighted_backward(late->b, rank.own);
          expect_gradient(late->b, rank.own, "b of the late model");
          second.reset();
          weighted_backward(rank.model->a, rank.own);
          expect_gradient(rank.model->a, 6, "a after all guards");
          expect_gradient(late->b, 1.5, "b of the late model after all guards");
        })) == "");
}

TEST_CASE("what came under no_sync is averaged by a backward that does not come to it",
          "[train][accumulation]") {
  const bool find_unused = GENERATE(true, false);
  CHECK(failures(ForkedGang::on_one_node(2).run([find_unused](GangContext& gang) {
          Rank rank(gang, find_unused);
          for (int round = 0; round < 3; ++round) {
            rank.model->zero_grad(round == 1);
            {
              const auto guard = rank.ctx.no_sync();
              weighted_backward(rank.model->a, rank.own);
            }
            weighted_backward(rank.model->b, rank.own);
            const auto when = fmt::format(" in round {}", round);
            expect_gradient(rank.model->a, 1.5, "a" + when);
            expect_gradient(rank.model->b, 1.5, "b" + when);
          }
        })) == "");
}

TEST_CASE("what came under no_sync on some ranks only is averaged, where that is allowed",
          "[train][accumulation]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Rank rank(gang, true);
          {
            const auto guard = rank.ctx.no_sync();
            if (rank.ctx.rank() == 1) weighted_backward(rank.model->a, rank.own);
          }
          weighted_backward(rank.model->b, rank.own);
          expect_gradient(rank.model->a, 1, "a");
          expect_gradient(rank.model->b, 1.5, "b");
        })) == "");
}

TEST_CASE("a gradient that was dropped after no_sync is not averaged", "[train][accumulation]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Rank rank(gang, true);
          {
            const auto guard = rank.ctx.no_sync();
            weighted_backward(rank.model->a, rank.own);
          }
          rank.model->zero_grad(true);
          weighted_backward(rank.model->b, rank.own);
          expect(!rank.model->a.grad().defined(), "a has no gradient");
        })) == "");
}

TEST_CASE("a model that was used under no_sync alone is averaged with the next one",
          "[train][accumulation]") {
  const bool find_unused = GENERATE(true, false);
  CHECK(failures(ForkedGang::on_one_node(2).run([find_unused](GangContext& gang) {
          Rank rank(gang, find_unused);
          auto other = rank.ctx.prepare(std::make_shared<TwoWeights>());
          for (int round = 0; round < 2; ++round) {
            rank.model->zero_grad(round == 0);
            other->zero_grad(round == 0);
            {
              const auto guard = rank.ctx.no_sync();
              weighted_backward(other->a + other->b, rank.own);
            }
            weighted_backward(rank.model->a + rank.model->b, rank.own);
            expect_gradient(other->a, 1.5, "a of the other model");
            expect_gradient(rank.model->b, 1.5, "b");
          }
        })) == "");
}

TEST_CASE("an undefined gradient counts as zero, and every rank gets the average",
          "[train][accumulation]") {
  const bool find_unused = GENERATE(true, false);
  CHECK(failures(ForkedGang::on_one_node(2).run([find_unused](GangContext& gang) {
          Rank rank(gang, find_unused);
          for (int round = 0; round < 2; ++round) {
            rank.model->zero_grad(round == 0);
            const bool is_open = rank.ctx.rank() == 1;
            (Gate::apply(rank.model->a, is_open) * rank.own + rank.model->b * rank.own)
                .sum()
                .backward();
            expect_gradient(rank.model->a, 1, "a");
            expect_gradient(rank.model->b, 1.5, "b");
          }
        })) == "");
}

TEST_CASE("a gradient that no rank used stays exactly what it was", "[train][accumulation]") {
  CHECK(failures(ForkedGang::on_one_node(3).run([](GangContext& gang) {
          Rank rank(gang, true);
          weighted_backward(rank.model->a, 0.1 * rank.own);
          const auto before = rank.model->a.grad().clone();
          rank.model->b.mutable_grad() = torch::Tensor();
          for (int step = 0; step < 5; ++step) weighted_backward(rank.model->b, rank.own);
          expect(torch::equal(rank.model->a.grad(), before), "a's gradient is left alone");
        })) == "");
}

TEST_CASE("a gradient that no rank used stays each rank's own, in whichever tensor it is",
          "[train][accumulation]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Rank rank(gang, true);
          auto& gradient = rank.model->a.mutable_grad();
          for (const auto& other : {another_object, in_other_memory}) {
            weighted_backward(rank.model->a, rank.own);
            gradient = other(gradient).mul_(rank.own);
            weighted_backward(rank.model->b, rank.own);
            expect_gradient(rank.model->a, 1.5 * rank.own, "a, which no rank used,");
            gradient = torch::Tensor();
          }
        })) == "");
}

TEST_CASE("a gradient that a rank did not use counts for the ranks that did, wherever it is",
          "[train][accumulation]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          Rank rank(gang, true);
          auto& gradient = rank.model->a.mutable_grad();
          for (const auto& other : {another_object, with_negative_bit, in_other_memory}) {
            weighted_backward(rank.model->a, rank.own);
            gradient = other(gradient).mul_(rank.own);
            const bool is_negative = gradient.is_neg();
            weighted_backward(rank.ctx.rank() == 0 ? rank.model->a : rank.model->b, 1);
            expect_gradient(rank.model->a, (is_negative ? -2.25 : 2.25) + 0.5,
                            "a, used on rank 0,");
            gradient = torch::Tensor();
          }
        })) == "");
}
