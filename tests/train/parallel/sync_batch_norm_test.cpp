#include <troupe/train/layers/sync_batch_norm.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "normalization/batch_statistics.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/rank_contexts.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

#include "batch_norm_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
using torch::nn::BatchNormOptions;

namespace {

/// What a layer is tried with: the shape of one rank's row, and its options.
struct Layer {
  std::vector<std::int64_t> row;  // without the number of rows; the first one is that of channels
  BatchNormOptions options;
  torch::ScalarType input = torch::kFloat64;
  torch::ScalarType parameters = torch::kFloat64;
  double tolerance = kSameNumbers;
};

std::vector<Layer> layers() {
  return {
      {.row = {3}, .options = BatchNormOptions(3).eps(0.1)},
      {.row = {4, 5}, .options = BatchNormOptions(4).affine(false)},
      {.row = {3, 4, 2}, .options = BatchNormOptions(3).track_running_stats(false)},
      {.row = {2, 2, 3, 2}, .options = BatchNormOptions(2).momentum(std::nullopt)},
      {.row = {4, 3, 3},
       .options = BatchNormOptions(4),
       .input = torch::kFloat32,
       .parameters = torch::kFloat32,
       .tolerance = 1e-5},
      {.row = {4, 3, 3},
       .options = BatchNormOptions(4),
       .input = torch::kBFloat16,
       .parameters = torch::kFloat32,
       .tolerance = 0.03},
  };
}

/// A layer with weights that are not all 1.
template <class Norm>
Norm made(const Layer& layer) {
  Norm norm(layer.options);
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : norm->parameters()) parameter.normal_(1, 0.5);
  norm->to(layer.parameters);
  return norm;
}

/// LibTorch's layer over all rows, in float64.
torch::Tensor reference_output(torch::nn::BatchNorm1d& norm, const torch::Tensor& all) {
  const auto flat = all.dim() == 2 ? all : all.flatten(2);
  return norm->forward(flat).view_as(all);
}

/// What ranks do with batches of `rows` rows each, where `counts` says which of them count.
void expect_one_batch(Communicator& comm, const Layer& layer, const std::vector<std::int64_t>& rows,
                      const std::vector<bool>& counts) {
  const auto here = static_cast<std::size_t>(comm.rank());
  auto norm = made<SyncBatchNorm>(layer);
  auto wide = layer;
  wide.parameters = torch::kFloat64;
  auto reference = made<torch::nn::BatchNorm1d>(wide);
  const auto share = std::make_shared<BatchShare>(BatchShare{.counts = counts[here]});
  const auto statistics =
      std::make_shared<BatchStatistics>(comm, torch::Device(torch::kCPU), share);
  share_statistics(*norm, statistics);

  torch::manual_seed(11);
  std::vector<torch::Tensor> batches, factors, counting;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    auto shape = layer.row;
    shape.insert(shape.begin(), rows[rank]);
    batches.push_back((torch::randn(shape, torch::kFloat64) * 3 + 2).to(layer.input));
    factors.push_back(torch::randn(shape, torch::kFloat64).to(layer.input));
    if (counts[rank]) counting.push_back(batches[rank].to(torch::kFloat64));
  }
  const auto all = torch::cat(counting).requires_grad_();
  auto own = batches[here].clone().requires_grad_();
  if (own.dim() == 4)
    own = own.detach().contiguous(torch::MemoryFormat::ChannelsLast).requires_grad_();

  for (int step = 0; step < 2; ++step) {
    const auto output = norm->forward(own);
    share->counts = true;  // of the next batch, which must not matter to this one's backward
    (output * factors[here]).sum().backward();
    share->counts = counts[here];
    const auto expected = reference_output(reference, all);
    expect(output.scalar_type() == layer.input, "the type of the input");
    std::int64_t first = 0;
    torch::Tensor loss = torch::zeros({}, torch::kFloat64);
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      if (!counts[rank]) continue;
      const auto part = expected.narrow(0, first, rows[rank]);
      loss = loss + (part * factors[rank].to(torch::kFloat64)).sum();
      if (rank == here) expect_close(output, part, layer.tolerance, "the output");
      first += rows[rank];
    }
    loss.backward();
  }
  expect_same_state(*norm, *reference, layer.tolerance);
  std::int64_t first = 0;
  for (std::size_t rank = 0; rank < here; ++rank) first += counts[rank] ? rows[rank] : 0;
  if (counts[here]) {
    expect_close(own.grad(), all.grad().narrow(0, first, rows[here]), 4 * layer.tolerance,
                 "the input's gradient");
  }
  for (const auto& item : norm->named_parameters()) {
    auto sum = item.value().grad().to(torch::kFloat64).contiguous();
    comm.all_reduce(std::span(sum.data_ptr<double>(), static_cast<std::size_t>(sum.numel())));
    expect_close(sum, reference->named_parameters()[item.key()].grad(), 4 * layer.tolerance,
                 "the sum of the ranks' gradients of " + item.key());
  }
}

/// Of the ranks of a gang, each of which has a layer of three channels.
std::vector<Outcome> outcomes_of(
    const std::function<void(Context& ctx, SyncBatchNorm& norm)>& rank) {
  return ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member, small_buckets());
    SyncBatchNorm norm(BatchNormOptions(3));
    ctx.prepare(norm);
    rank(ctx, norm);
  });
}

/// What it throws, "" for nothing.
std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return std::string("invalid_argument: ") + error.what();
  } catch (const std::logic_error& error) {
    return std::string("logic_error: ") + error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos,
         fmt::format("\"{}\" in the error, which is \"{}\"", part, text));
}

}  // namespace

TEST_CASE("ranks with SyncBatchNorm train as one process with BatchNorm over the joined batch",
          "[train][batch_norm][zero]") {
  const auto [ranks, stage] = GENERATE(table<int, int>({{3, 0}, {2, 1}, {2, 2}, {3, 3}}));
  CAPTURE(ranks, stage);
  CHECK(run(ranks, batch_norm_options(stage), [](Context& ctx) { expect_joined_batch(ctx); }) ==
        "");
}

TEST_CASE("ranks may have batches of other sizes, none, or one that does not count",
          "[train][batch_norm]") {
  CHECK(failures(ForkedGang::on_one_node(3).run([](GangContext& gang) {
          const auto comm = make_host_communicator(gang);
          for (const auto& layer : layers()) {
            expect_one_batch(*comm, layer, {4, 0, 3}, {true, true, true});
            expect_one_batch(*comm, layer, {4, 1, 3}, {true, true, false});
          }
        })) == "");
}

TEST_CASE("in eval mode, with one rank and without a context SyncBatchNorm is BatchNorm",
          "[train][batch_norm]") {
  const int ranks = GENERATE(1, 2);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          const Layer layer{
              .row = {3}, .options = BatchNormOptions(3), .parameters = torch::kFloat32};
          auto norm = made<SyncBatchNorm>(layer);
          auto reference = made<torch::nn::BatchNorm1d>(layer);
          const auto expect_identical = [&](const std::string& when) {
            torch::manual_seed(static_cast<std::uint64_t>(gang.rank()));
            const auto x = torch::randn({5, 3});
            expect(torch::equal(norm->forward(x), reference->forward(x)), "the output " + when);
            expect_same_state(*norm, *reference, 0);
          };
          expect_identical("before there is a context");
          TestMember member(gang);
          {
            Context ctx(member, small_buckets());
            norm->eval();
            ctx.prepare(norm);
            for (const auto& buffer : norm->named_buffers())
              reference->named_buffers()[buffer.key()].copy_(buffer.value());
            reference->eval();
            expect_identical("in eval mode");
            norm->train();
            reference->train();
            if (gang.size() == 1) {
              expect_identical("with one rank");
            } else {
              const auto x = torch::full({2, 3}, static_cast<float>(gang.rank()));
              const auto copy = std::dynamic_pointer_cast<SyncBatchNormImpl>(norm->clone());
              const auto expected = (x - 0.5) / std::sqrt(0.25 + 1e-5) * norm->weight + norm->bias;
              expect_close(copy->forward(x), expected, 1e-5,
                           "the output of a copy, over all ranks");
            }
          }
          expect_identical("after its context has ended");
          std::ostringstream text;
          text << *norm;
          expect(text.str() ==
                     "troupe::train::SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=true, "
                     "track_running_stats=true)",
                 text.str());
        })) == "");
}

TEST_CASE("SyncBatchNorm under autocast has statistics of float32, and master weights spare it",
          "[train][batch_norm][precision]") {
  auto options = small_buckets();
  options.mixed_precision = {.type = MixedPrecision::Type::BFloat16, .master_weights = true};
  CHECK(run(2, options, [](Context& ctx) {
          torch::nn::Sequential made(torch::nn::Linear(6, 4), SyncBatchNorm(BatchNormOptions(4)),
                                     torch::nn::Linear(4, 2));
          auto net = ctx.prepare(made);
          auto optimizer = ctx.prepare(sgd_of(net));
          expect(net[0]->parameters()[0].scalar_type() == torch::kBFloat16 &&
                     net[1]->parameters()[0].scalar_type() == torch::kFloat32 &&
                     net[1]->buffers()[0].scalar_type() == torch::kFloat32,
                 "the types");
          const auto before = net[1]->parameters()[1].clone();
          at::Tensor loss;
          {
            const auto autocast = ctx.autocast();
            loss = net->forward(rows(8, 6, static_cast<std::uint64_t>(ctx.rank())).to(at::kFloat))
                       .to(torch::kFloat32)
                       .square()
                       .mean();
          }
          loss.backward();
          optimizer.step();
          expect(!torch::equal(before, net[1]->parameters()[1]), "it is trained");
          auto mean = net[1]->buffers()[0].clone();
          ctx.communicator().broadcast(std::span(mean.data_ptr<float>(), 4), 0);
          expect(torch::equal(mean, net[1]->buffers()[0]), "one running mean on all ranks");
        }) == "");
}

TEST_CASE("SyncBatchNorm refuses what cannot be, on all ranks, and goes on afterwards",
          "[train][batch_norm]") {
  CHECK(failures(outcomes_of([](Context& ctx, SyncBatchNorm& norm) {
          const auto refused = [&](const torch::Tensor& input) {
            return refusal_of([&] { norm->forward(input); });
          };
          expect_contains(refused(torch::zeros({1 - ctx.rank(), 3})),
                          "invalid_argument: SyncBatchNorm: expected more than 1 value per channel "
                          "on all ranks together when training, got 1");
          expect(norm->num_batches_tracked.item<std::int64_t>() == 0, "no batch is tracked");
          expect_contains(refused(torch::zeros({2, 4, 5})),
                          "with 3 channels, its num_features, "
                          "got 4 (input of shape (2, 4, 5)");
          expect_contains(refused(torch::zeros({3})), "at least 2D input");
          expect_contains(refused(torch::zeros({2, 3}, torch::kFloat64)), "got Double");
          expect_contains(refused(torch::zeros({2, 3}, torch::kInt64)), "got Long");
          const auto x = torch::full({1, 3}, ctx.rank() == 0 ? -1.0F : 1.0F).requires_grad_();
          expect_close(norm->forward(x), x, 1e-4, "the output of the next batch");
          const auto loss = norm->forward(x).square().sum();
          expect_contains(refusal_of([&] {
                            torch::autograd::grad({loss}, {x}, {}, true, /*create_graph=*/true);
                          }),
                          "logic_error: SyncBatchNorm: backward() with create_graph");
        })) == "");
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    TestMember member(gang);
    SyncBatchNorm norm(BatchNormOptions(3));
    torch::Tensor loss;
    {
      Context ctx(member, small_buckets());
      loss = ctx.prepare(norm)->forward(torch::randn({4, 3})).sum();
    }
    loss.backward();
  });
  for (const auto& outcome : outcomes)
    CHECK_THAT(outcome.message, Contains("has ended, and backward() needs the other ranks"));
}

TEST_CASE("a rank that throws before a SyncBatchNorm ends the others' forward and backward",
          "[train][batch_norm][failure]") {
  const bool in_backward = GENERATE(false, true);
  const auto outcomes = outcomes_of([&](Context& ctx, SyncBatchNorm& norm) {
    const auto fail = [&] {
      if (ctx.rank() == 1) throw std::runtime_error("no more data");
    };
    if (!in_backward) fail();
    const auto output = norm->forward(torch::randn({4, 3}));
    fail();
    output.sum().backward();
  });
  CHECK(outcomes[1].message == "no more data");
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains("rank 1"));
}

TEST_CASE("an exception in the middle of backward ends the others' SyncBatchNorm",
          "[train][batch_norm][failure]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member, small_buckets());
    torch::nn::Sequential made(torch::nn::Linear(6, 4), SyncBatchNorm(BatchNormOptions(4)),
                               torch::nn::Linear(4, 2));
    auto net = ctx.prepare(made);
    auto between = net[1]->as<SyncBatchNorm>()->forward(
        net[0]->as<torch::nn::Linear>()->forward(torch::randn({3, 6})));
    between.register_hook([&](const at::Tensor&) {
      if (ctx.rank() == 1) throw std::runtime_error("no more memory");
    });
    // The last layer's gradients come before the hook's turn.
    (net[2]->as<torch::nn::Linear>()->forward(torch::tanh(between)).sum() + between.sum())
        .backward();
  });
  CHECK(outcomes[1].message == "no more memory");
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains("an exception has left backward()"));
}

TEST_CASE("with stage 2 no model waits in backward for ranks that are in another's SyncBatchNorm",
          "[train][batch_norm][zero]") {
  const bool is_first = GENERATE(true, false);
  auto options = small_buckets();
  options.zero.stage = 2;
  options.data_parallel.first_bucket_bytes = options.data_parallel.bucket_bytes = 100;
  CHECK(run(2, options, [=](Context& ctx) {
          auto plain = Net(kWidths, 5);
          torch::nn::Sequential with_norm(torch::nn::Linear(6, 4),
                                          SyncBatchNorm(BatchNormOptions(4)));
          with_norm->to(torch::kFloat64);
          if (is_first) with_norm = ctx.prepare(with_norm);
          plain = ctx.prepare(plain);
          if (!is_first) with_norm = ctx.prepare(with_norm);
          const auto x = rows(5, 6, static_cast<std::uint64_t>(ctx.rank()));
          for (int step = 0; step < 3; ++step) {
            // Backward comes first to what was computed last.
            torch::Tensor a, b;
            if (ctx.rank() == 0) a = plain->forward(x).sum();
            b = with_norm->forward(x).square().sum();
            if (ctx.rank() == 1) a = plain->forward(x).sum();
            (a + b).backward();
          }
        }) == "");
}

TEST_CASE("a batch that a rank goes through again is in no rank's statistics",
          "[train][batch_norm][join]") {
  CHECK(run(2, small_buckets(), [](Context& ctx) {
          const auto batch_of = [](int rank, int number) {
            return rows(4, 3, static_cast<std::uint64_t>(10 * rank + number));
          };
          SyncBatchNorm norm(BatchNormOptions(3));
          norm->to(torch::kFloat64);
          norm = ctx.prepare(norm);
          std::vector<torch::Tensor> batches{batch_of(ctx.rank(), 0)};
          if (ctx.rank() == 1) batches.push_back(batch_of(1, 1));
          torch::nn::BatchNorm1d alone(BatchNormOptions(3));
          alone->to(torch::kFloat64);
          for (const auto& batch : ctx.join(batches)) {
            norm->zero_grad();
            (norm->forward(batch) * batch_of(5, 5)).sum().backward();
          }
          alone->forward(torch::cat({batch_of(0, 0), batch_of(1, 0)}));
          (alone->forward(batch_of(1, 1)) * batch_of(5, 5)).sum().backward();
          for (const auto& item : norm->named_buffers())
            expect_close(item.value(), alone->named_buffers()[item.key()], kSameNumbers,
                         item.key());
          for (const auto& item : norm->named_parameters()) {
            expect_close(item.value().grad(), alone->named_parameters()[item.key()].grad() / 2,
                         kSameNumbers, "the gradient of " + item.key());
          }
        }) == "");
}
