#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/modules.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <troupe/train/context.hpp>

#include "checkpoint/manifest.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/scratch.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using train::Context;
namespace fs = std::filesystem;

namespace {

/// A parameter, a buffer, and a module within that has another buffer.
struct Signal : torch::nn::Module {
  Signal(torch::Tensor weight, torch::Tensor buffer, torch::Tensor inner_buffer)
      : inner(std::make_shared<torch::nn::Module>()) {
    register_parameter("weight", std::move(weight));
    register_buffer("buffer", std::move(buffer));
    inner->register_buffer("buffer", std::move(inner_buffer));
    register_module("inner", inner);
  }
  /// The values of all, as they show.
  std::vector<torch::Tensor> values() const {
    std::vector<torch::Tensor> all;
    for (const auto& tensor : parameters())
      all.push_back(torch::view_as_real(tensor.detach().resolve_conj()).clone());
    for (const auto& tensor : buffers())
      all.push_back(tensor.is_complex() ? torch::view_as_real(tensor.resolve_conj()).clone()
                                        : tensor.resolve_neg().clone());
    return all;
  }
  std::shared_ptr<torch::nn::Module> inner;
};

torch::Tensor numbers(float first) {
  return torch::complex(torch::full({3}, first), torch::full({3}, first + 1));
}
/// Conjugated views as parameter and buffer, and a negated view, or plain tensors.
std::shared_ptr<Signal> signal_of(float first, bool is_lazy) {
  if (is_lazy) {
    return std::make_shared<Signal>(numbers(first).conj(), numbers(first + 2).conj(),
                                    torch::imag(numbers(first + 4).conj()));
  }
  return std::make_shared<Signal>(numbers(first), numbers(first + 2), torch::full({3}, first + 4));
}

bool are_same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  bool is_same = a.size() == b.size();
  for (std::size_t i = 0; is_same && i < a.size(); ++i) is_same = torch::equal(a[i], b[i]);
  return is_same;
}

/// Runs a function with a context of a gang of one, with these folders. -> what it threw; empty:
/// nothing.
std::string alone(const std::function<void(Context&)>& rank, const fs::path& storage = {},
                  const fs::path& from = {}) {
  const auto outcomes = ForkedGang::on_one_node(1).run([&](GangContext& gang) {
    TestMember member(gang, storage, from);
    Context ctx(member);
    rank(ctx);
  });
  return outcomes[0].threw ? outcomes[0].type + ": " + outcomes[0].message : failures(outcomes);
}

}  // namespace

TEST_CASE("conjugated and negated tensors of a module survive a checkpoint",
          "[train][checkpoint][model]") {
  const Scratch scratch;
  const bool is_lazy = GENERATE(true, false);
  const bool is_lazy_there = GENERATE(true, false);
  CHECK(alone(
            [&](Context& ctx) {
              const auto saved = signal_of(1, is_lazy);
              const auto values = saved->values();
              const auto checkpoint = ctx.checkpoint(saved).directory;
              expect(are_same(saved->values(), values), "a module is after it was saved as before");
              auto loaded = signal_of(100, is_lazy_there);
              train::load(loaded, checkpoint);
              expect(are_same(loaded->values(), values), "the same values");
            },
            scratch.path()) == "");
}

TEST_CASE("a module keeps its types whatever floating types a checkpoint has",
          "[train][checkpoint][model]") {
  const auto saved = GENERATE(torch::kFloat64, torch::kFloat32, torch::kBFloat16, torch::kHalf);
  const auto own = GENERATE(torch::kFloat64, torch::kFloat32, torch::kBFloat16, torch::kHalf);
  const auto make = [](double value, torch::ScalarType type) {
    return std::make_shared<Signal>(torch::full({3}, value, type),
                                    torch::full({2}, value + 1, type),
                                    torch::full({2}, static_cast<std::int64_t>(value)));
  };
  const Scratch scratch;
  CHECK(alone(
            [&](Context& ctx) {
              const auto checkpoint = ctx.checkpoint(make(3, saved)).directory;
              auto loaded = make(9, own);
              const auto weight = loaded->parameters()[0];
              train::load(loaded, checkpoint);
              expect(weight.is_same(loaded->parameters()[0]), "the same parameter");
              expect(weight.scalar_type() == own && weight.requires_grad(), "its own type");
              expect(torch::equal(weight, torch::full({3}, 3, own)), "a parameter");
              expect(torch::equal(loaded->buffers()[0], torch::full({2}, 4, own)), "a buffer");
              expect(torch::equal(loaded->buffers()[1], torch::full({2}, 3, torch::kInt64)),
                     "a buffer of integers");
            },
            scratch.path()) == "");
}

TEST_CASE("a parameter that two layers share is written once", "[train][checkpoint][model]") {
  const Scratch scratch;
  CHECK(alone(
            [&](Context& ctx) {
              auto shared = torch::ones({300, 300});
              auto saved = std::make_shared<torch::nn::Module>();
              saved->register_parameter("a", shared);
              saved->register_module("b", std::make_shared<torch::nn::Module>());
              saved->children()[0]->register_parameter("c", saved->parameters()[0]);
              const auto checkpoint = ctx.checkpoint(saved).directory;
              expect(fs::file_size(checkpoint / "model0_rank0.safetensors") < 300 * 300 * 4 + 500,
                     "one copy");
              auto apart = std::make_shared<torch::nn::Module>();
              apart->register_parameter("a", torch::zeros({300, 300}));
              apart->register_module("b", std::make_shared<torch::nn::Module>());
              apart->children()[0]->register_parameter("c", torch::zeros({300, 300}));
              train::load(apart, checkpoint);
              for (const auto& parameter : apart->parameters())
                expect(torch::equal(parameter, shared), "both names");
              auto other_name = std::make_shared<torch::nn::Module>();
              other_name->register_module("b", std::make_shared<torch::nn::Module>());
              other_name->children()[0]->register_parameter("c", torch::zeros({300, 300}));
              train::load(other_name, checkpoint);
              expect(torch::equal(other_name->parameters()[0], shared), "the other name alone");
            },
            scratch.path()) == "");
}

TEST_CASE("two tensors of a checkpoint are not read into one that has both names",
          "[train][checkpoint][model]") {
  const auto model_of = [](bool is_tied, double first, double second) {
    auto model = std::make_shared<torch::nn::Module>();
    auto embedding = std::make_shared<torch::nn::Module>();
    auto head = std::make_shared<torch::nn::Module>();
    const auto& weight = embedding->register_parameter("weight", torch::full({2, 3}, first));
    head->register_parameter("weight", is_tied ? weight : torch::full({2, 3}, second));
    model->register_module("embedding", embedding);
    model->register_module("head", head);
    return model;
  };
  const auto load_with = [&](bool was_tied, bool is_tied) {
    const Scratch scratch;
    return alone(
        [&](Context& ctx) {
          const auto checkpoint = ctx.checkpoint(model_of(was_tied, 1, 2)).directory;
          auto model = model_of(is_tied, 7, 7);
          const double second = was_tied ? 1 : 2;
          try {
            train::load(model, checkpoint);
          } catch (const std::invalid_argument&) {
            for (const auto& parameter : model->parameters())
              expect(torch::equal(parameter, torch::full({2, 3}, 7.)), "nothing was read");
            throw;
          }
          const auto named = model->named_parameters();
          expect(torch::equal(named["embedding.weight"], torch::full({2, 3}, 1.)), "the first");
          expect(torch::equal(named["head.weight"], torch::full({2, 3}, second)), "the second");
        },
        scratch.path());
  };
  CHECK(load_with(false, false) == "");
  CHECK(load_with(true, false) == "");
  CHECK(load_with(true, true) == "");
  CHECK_THAT(load_with(false, true),
             Contains("checkpoint_000000 is of another model: 'head.weight' is not in the model as "
                      "a tensor of its own"));
}

TEST_CASE("a checkpoint of another model is refused before anything is read",
          "[train][checkpoint][model]") {
  const auto load_into = [](const std::function<std::shared_ptr<torch::nn::Module>()>& make) {
    const Scratch scratch;
    return alone(
        [&](Context& ctx) {
          auto saved = std::make_shared<torch::nn::Module>();
          saved->register_parameter("a", torch::ones({2}));
          saved->register_parameter("b", torch::ones({2, 3}));
          saved->register_buffer("n", torch::ones({}, torch::kInt64));
          const auto checkpoint = ctx.checkpoint(saved).directory;
          auto model = make();
          try {
            train::load(model, checkpoint);
          } catch (const std::invalid_argument&) {
            for (const auto& parameter : model->parameters())
              expect(torch::equal(parameter, torch::zeros_like(parameter)), "nothing was read");
            throw;
          }
        },
        scratch.path());
  };
  const auto with = [](std::int64_t columns, bool has_buffer, torch::ScalarType type) {
    auto model = std::make_shared<torch::nn::Module>();
    model->register_parameter("a", torch::zeros({2}));
    model->register_parameter("b", torch::zeros({2, columns}));
    if (has_buffer) model->register_buffer("n", torch::zeros({}, type));
    return model;
  };
  CHECK(load_into([&] { return with(3, true, torch::kInt64); }) == "");
  CHECK_THAT(
      load_into([&] { return with(4, true, torch::kInt64); }),
      Contains("checkpoint_000000 is of another model: 'b' has the shape [2, 4] in the model "
               "and [2, 3] in the checkpoint"));
  CHECK_THAT(load_into([&] { return with(3, false, torch::kInt64); }),
             Contains("is of another model: the model has no 'n'"));
  CHECK_THAT(load_into([&] { return with(3, true, torch::kInt32); }),
             Contains("'n' has the type Int in the model and Long in the checkpoint"));
  CHECK_THAT(load_into([&] {
               auto model = with(3, true, torch::kInt64);
               model->register_parameter("more", torch::zeros({1}));
               return model;
             }),
             Contains("is of another model: it has no 'more'"));
  const Scratch scratch;
  CHECK_THAT(alone(
                 [&](Context& ctx) {
                   auto model = with(3, true, torch::kInt64);
                   const auto checkpoint = ctx.checkpoint(model).directory;
                   train::load(model, checkpoint, 1);
                 },
                 scratch.path()),
             Contains("has 1 models, and none with the number 1"));
}

TEST_CASE("a tensor that no file can have is refused with its name", "[train][checkpoint][model]") {
  const Scratch scratch;
  CHECK_THAT(alone(
                 [](Context& ctx) {
                   auto model = std::make_shared<torch::nn::Module>();
                   model->register_buffer("sparse", torch::eye(3).to_sparse());
                   ctx.checkpoint(model);
                 },
                 scratch.path()),
             Contains("invalid_argument: a checkpoint cannot have the tensor 'sparse'") &&
                 Contains("to_dense()"));
}

TEST_CASE("a tensor that nothing could be read into is refused when it is saved",
          "[train][checkpoint][model]") {
  const Scratch scratch;
  CHECK_THAT(alone(
                 [](Context& ctx) {
                   auto model = std::make_shared<torch::nn::Module>();
                   model->register_buffer("expanded", torch::ones({1}).expand({7}));
                   ctx.checkpoint(model);
                 },
                 scratch.path()),
             Contains("a checkpoint cannot have the tensor 'expanded': its elements share memory"));
}

TEST_CASE("an optimizer goes on with its state, whichever it is", "[train][checkpoint][model]") {
  const auto which = GENERATE(0, 1, 2, 3);
  const auto steps_with = [](Context& ctx, auto make, int from, int to, torch::nn::Linear layer,
                             bool saves) {
    auto optimizer = ctx.prepare(make(layer));
    for (int i = from; i < to; ++i) {
      optimizer.zero_grad();
      (layer->forward(torch::full({2, 3}, 0.1 * (i + 1))).pow(2).sum() * 0.1).backward();
      optimizer.step();
    }
    if (saves) ctx.checkpoint(layer, optimizer);
    return layer->weight.detach().clone();
  };
  const auto run = [&](Context& ctx, int from, int to, bool saves) {
    torch::manual_seed(3);
    auto layer = ctx.prepare(torch::nn::Linear(3, 2));
    using namespace torch::optim;
    const auto start = [&](auto make) { return steps_with(ctx, make, from, to, layer, saves); };
    switch (which) {
      case 0:
        return start([](auto& l) { return SGD(l->parameters(), SGDOptions(0.1).momentum(0.9)); });
      case 1:
        return start([](auto& l) { return Adam(l->parameters(), AdamOptions(0.1).amsgrad(true)); });
      case 2:
        return start([](auto& l) { return Adagrad(l->parameters(), AdagradOptions(0.1)); });
      default:
        return start([](auto& l) { return SGD(l->parameters(), SGDOptions(0.1)); });
    }
  };
  const Scratch scratch;
  const auto whole = (scratch.path() / "whole.pt").string();
  CHECK(alone([&](Context& ctx) { torch::save(run(ctx, 0, 6, false), whole); }) == "");
  CHECK(alone([&](Context& ctx) { run(ctx, 0, 3, true); }, scratch.path()) == "");
  CHECK(alone(
            [&](Context& ctx) {
              torch::Tensor expected;
              torch::load(expected, whole);
              expect(torch::equal(run(ctx, 3, 6, false), expected), "as if never interrupted");
            },
            {}, train::latest_checkpoint(scratch.path())) == "");
}

TEST_CASE("a checkpoint of another optimizer is refused with its type, or the first parameter",
          "[train][checkpoint][model]") {
  const Scratch scratch;
  using namespace torch::optim;
  const auto layer = [](std::int64_t width) { return torch::nn::Linear(3, width); };
  const auto step = [](auto& made, auto& optimizer) {
    made->forward(torch::ones({2, 3})).sum().backward();
    optimizer.step();
  };
  CHECK(alone(
            [&](Context& ctx) {
              auto made = ctx.prepare(layer(2));
              auto optimizer = ctx.prepare(Adam(made->parameters(), 0.1));
              step(made, optimizer);
              ctx.checkpoint(made, optimizer);
            },
            scratch.path()) == "");
  const auto from = train::latest_checkpoint(scratch.path());
  CHECK_THAT(
      alone(
          [&](Context& ctx) {
            auto made = layer(2);
            ctx.prepare(SGD(made->parameters(), 0.1));
          },
          {}, from),
      Contains("optimizer 0 of the checkpoint") && Contains("is of the type Adam, and this run "
                                                            "has one of the type SGD"));
  const auto fault_with = [&](const std::function<Adam(torch::nn::Linear&)>& make,
                              std::int64_t width = 2) {
    return alone(
        [&](Context& ctx) {
          auto made = width == 2 ? ctx.prepare(layer(2)) : layer(width);
          ctx.prepare(make(made));
        },
        {}, from);
  };
  CHECK_THAT(fault_with([](auto& made) { return Adam(made->parameters(), 0.1); }, 4),
             Contains("it has 'weight' as parameter 0 of group 0 of the shape [2, 3] there, and "
                      "'weight' as parameter 0 of group 0 of the shape [4, 3] in this run"));
  CHECK_THAT(
      fault_with([](auto& made) {
        return Adam(std::vector{made->bias, made->weight}, 0.1);
      }),
      Contains("it has 'weight' as parameter 0 of group 0 there, and 'bias' as parameter 0 of "
               "group 0 in this run"));
  CHECK_THAT(fault_with([](auto& made) { return Adam(std::vector{made->weight}, 0.1); }),
             Contains("it has 2 parameters in group 0 there, and 1 parameters in group 0"));
  CHECK_THAT(
      fault_with([](auto& made) {
        return Adam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::vector{made->weight}),
                                                     OptimizerParamGroup(std::vector{made->bias})});
      }),
      Contains("it has 1 groups there, and 2 groups in this run"));
}

TEST_CASE("the state of an optimizer has to fit its parameters", "[train][checkpoint][model]") {
  const Scratch scratch;
  const auto optimizer_of = [](torch::nn::Linear& layer) {
    return torch::optim::Adam(layer->parameters(), 0.1);
  };
  CHECK(alone(
            [&](Context& ctx) {
              auto layer = ctx.prepare(torch::nn::Linear(3, 2));
              auto optimizer = ctx.prepare(optimizer_of(layer));
              layer->forward(torch::ones({2, 3})).sum().backward();
              optimizer.step();
              ctx.checkpoint(layer, optimizer);
            },
            scratch.path()) == "");
  const auto from = train::latest_checkpoint(scratch.path());
  const auto whole = content_of(from / train::kManifestName);
  const auto fault_after = [&](const std::function<void(train::SavedState&)>& change) {
    auto manifest = train::parse_manifest(whole);
    change(manifest.optimizers.at(0).groups.at(0).at(0));
    write(from / train::kManifestName, train::print_manifest(manifest));
    return alone(
        [&](Context& ctx) {
          auto layer = ctx.prepare(torch::nn::Linear(3, 2));
          ctx.prepare(optimizer_of(layer));
        },
        {}, from);
  };
  CHECK(fault_after([](auto&) {}) == "");
  CHECK_THAT(fault_after([](auto& state) {
               auto& moment = state.tensors.at("exp_avg");
               moment.shape = {1, 3};
               moment.pieces.clear();
             }),
             Contains("is another one: exp_avg of 'weight' has the shape [1, 3] there, and the "
                      "parameter [2, 3]"));
  CHECK_THAT(fault_after([](auto& state) { state.tensors.erase("exp_avg_sq"); }),
             Contains("is another one: 'weight' has made 1 steps there, and has no exp_avg_sq"));
  CHECK_THAT(fault_after([](auto& state) { state.tensors.clear(); }),
             Contains("is another one: 'weight' has made 1 steps there, and has no exp_avg"));
}

TEST_CASE("an optimizer that is refused leaves its state to the next one",
          "[train][checkpoint][model]") {
  const Scratch scratch;
  using namespace torch::optim;
  // The rates of the checkpoint's are 1 and 2.
  const auto prepared = [](Context& ctx, torch::nn::Linear& layer, double rate) {
    return ctx.prepare(SGD(layer->parameters(), rate));
  };
  CHECK(alone(
            [&](Context& ctx) {
              auto layer = ctx.prepare(torch::nn::Linear(3, 2));
              auto first = prepared(ctx, layer, 1);
              auto second = prepared(ctx, layer, 2);
              ctx.checkpoint(layer, first, second);
            },
            scratch.path()) == "");
  CHECK(alone(
            [&](Context& ctx) {
              auto layer = ctx.prepare(torch::nn::Linear(3, 2));
              for (const double expected : {1., 2.}) {
                const auto refused = thrown_by<std::invalid_argument>(
                    [&] { ctx.prepare(Adam(layer->parameters(), 0.1)); });
                expect_in(refused, "is of the type SGD, and this run has one of the type Adam");
                const auto optimizer = prepared(ctx, layer, 9);
                const auto rate = optimizer.param_groups()[0].options().get_lr();
                expect(rate == expected, "the rate " + std::to_string(rate));
              }
            },
            {}, train::latest_checkpoint(scratch.path())) == "");
}

TEST_CASE("the best checkpoints of a run stay, and the last", "[train][checkpoint][model]") {
  const Scratch scratch;
  const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    TestMember member(gang, scratch.path());
    Context ctx(member, {.checkpoints = {.keep_best = 1, .metric = "loss"}});
    auto layer = ctx.prepare(torch::nn::Linear(1, 1));
    const auto unreported = ctx.checkpoint(layer);
    for (const double loss : {3., 1., 2., 4.}) ctx.report({{"loss", loss}}, ctx.checkpoint(layer));
    ctx.report({{"other", 1}});
    ctx.report({{"other", 1}}, ctx.checkpoint(layer));
  });
  CHECK_THAT(outcomes[0].message, Contains("reported without the metric 'loss'"));
  CHECK(names_in(scratch.path()) ==
        std::vector<std::string>{"checkpoint_000000", "checkpoint_000002", "checkpoint_000004",
                                 "checkpoint_000005"});
}
