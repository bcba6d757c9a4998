#include <troupe/train/context.hpp>

#include <atomic>
#include <csignal>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include "parallel/averaging/reducer.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/parameter_values.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

void expect_same_gradients(Net& net, Net& reference, const std::string& when) {
  for (const auto& item : reference->named_parameters()) {
    expect_close(net->named_parameters()[item.key()].grad(), item.value().grad(), 1e-9,
                 fmt::format("the gradient of {} {}", item.key(), when));
  }
}

}  // namespace

TEST_CASE("gradients of the ranks equal those of one process on the joined batch",
          "[train][data_parallel]") {
  const int ranks = GENERATE(1, 2, 3, 4);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, small_buckets());
          // Rank 0's weights count.
          auto net = ctx.prepare(Net(kWidths, 1 + static_cast<std::uint64_t>(gang.rank())));
          Net reference(kWidths, 1);
          loss_of(reference, 0, 1).backward();
          loss_of(net, gang.rank(), gang.size()).backward();
          expect_same_gradients(net, reference, "in the first step");
        })) == "");
}

TEST_CASE("ranks on two nodes average alike", "[train][data_parallel]") {
  CHECK(failures(ForkedGang::on_nodes(4, 2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, small_buckets());
          auto net = ctx.prepare(Net(kWidths));
          Net reference(kWidths);
          loss_of(reference, 0, 1).backward();
          loss_of(net, gang.rank(), gang.size()).backward();
          expect_same_gradients(net, reference, "over two nodes");
        })) == "");
}

TEST_CASE("twenty steps of an optimizer give the weights of one process",
          "[train][data_parallel]") {
  const bool set_to_none = GENERATE(true, false);
  CHECK(failures(ForkedGang::on_one_node(3).run([set_to_none](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, small_buckets());
          BesideOne both(ctx, kWidths, [](Net& of) {
            return torch::optim::SGD(of->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
          });
          for (std::uint64_t step = 0; step < 20; ++step) {
            both.backward(step, set_to_none);
            both.update();
          }
          both.expect_same_values(1e-9, "after twenty steps");
        })) == "");
}

TEST_CASE("gradients accumulated under no_sync are averaged by the backward after it",
          "[train][data_parallel]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, small_buckets());
          auto net = ctx.prepare(Net(kWidths));
          Net reference(kWidths);
          // The second time the gradients lie in the buckets already.
          for (int round = 0; round < 2; ++round) {
            net->zero_grad(round == 0);
            reference->zero_grad();
            for (std::uint64_t step = 0; step < 3; ++step)
              loss_of(reference, 0, 1, step).backward();
            {
              const auto guard = ctx.no_sync();
              for (std::uint64_t step = 0; step < 2; ++step)
                loss_of(net, gang.rank(), gang.size(), step).backward();
            }
            loss_of(net, gang.rank(), gang.size(), 2).backward();
            expect_same_gradients(net, reference, fmt::format("accumulated in round {}", round));
          }
        })) == "");
}

// Backward is held in the first layer, which it comes to last, until a bucket has been reduced:
// without overlap it would wait in vain.
TEST_CASE("buckets are reduced while backward still runs", "[train][data_parallel]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          auto comm = make_host_communicator(gang);
          Net net(kWidths);
          std::vector<NamedTensor> parameters;
          for (const auto& item : net->named_parameters())
            parameters.push_back({item.key(), item.value()});
          std::atomic<int> reduced{0};
          int reduced_before_the_end = 0;
          bool ended = false;
          const auto queue = std::make_shared<ReductionQueue>(*comm);
          auto reducer = Reducer::make(queue, *comm, parameters,
                                       {.options = small_buckets().data_parallel,
                                        .trace = [&](Reducer::Event event, std::size_t) {
                                          if (event == Reducer::Event::Reduced)
                                            reduced.fetch_add(1);
                                          if (event == Reducer::Event::BackwardEnded) ended = true;
                                        }});
          expect(reducer->buckets() >= 3, "several buckets");
          net->layers[0]->weight.register_hook([&](const at::Tensor&) {
            expect(eventually([&] { return reduced.load() > 0; }),
                   "a bucket reduced before the last gradient");
            reduced_before_the_end = reduced.load();
          });
          loss_of(net, gang.rank(), gang.size()).backward();
          expect(reduced_before_the_end > 0 && ended, "an overlap and an end");
          expect(reduced.load() == static_cast<int>(reducer->buckets()),
                 "all buckets reduced at the end");
        })) == "");
}

TEST_CASE("parameters without a gradient are named, on the ranks that lack it and on the others",
          "[train][data_parallel]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member, small_buckets());
    auto net = ctx.prepare(Net(kWidths));
    if (gang.rank() == 0)
      loss_of(net, 0, 2).backward();
    else
      net->layers[0]->forward(rows(3, kWidths.front(), 1)).sum().backward();
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.type << ": " << outcome.message);
    CHECK(outcome.threw);
    CHECK_THAT(outcome.message, Contains("4 of 6 parameters got no gradient") &&
                                    Contains("layer2.weight") &&
                                    Contains("find_unused_parameters"));
  }
  CHECK(outcomes[0].type == "GangBroken");
}

TEST_CASE(
    "with find_unused_parameters what a rank did not use counts as zero, and what none used is "
    "left alone",
    "[train][data_parallel]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, small_buckets(true));
          auto net = ctx.prepare(Net(kWidths));
          const auto x = rows(3, kWidths.front(), 1);
          for (int round = 0; round < 2; ++round) {
            net->zero_grad();
            auto out = net->layers[0]->forward(x);
            if (gang.rank() == 0) out = net->layers[1]->forward(out);
            out.sum().backward();

            Net reference(kWidths);
            reference->layers[1]->forward(reference->layers[0]->forward(x)).sum().backward();
            expect_close(net->layers[1]->weight.grad(), reference->layers[1]->weight.grad() / 2,
                         1e-9, "half of what one of two ranks has");
            expect(!net->layers[2]->weight.grad().defined(), "no gradient for what no rank used");
          }
        })) == "");
}

TEST_CASE("models that differ between ranks are refused with the first difference",
          "[train][data_parallel]") {
  const auto outcomes = ForkedGang::on_one_node(3).run([](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member);
    auto net = ctx.prepare(Net(gang.rank() == 1 ? std::vector<std::int64_t>{6, 41, 4}
                                                : std::vector<std::int64_t>{6, 40, 4}));
  });
  for (const auto& outcome : outcomes) {
    CHECK(outcome.type == "invalid_argument");
    CHECK_THAT(outcome.message, Contains("on rank 1 parameter 0 is \"layer0.weight [41, 6] "
                                         "Double\", on rank 0 it is \"layer0.weight [40, 6]"));
  }
}

TEST_CASE("a float32 model with buffers gets rank 0's values and keeps its names",
          "[train][data_parallel]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          struct Tracker : torch::nn::Module {
            explicit Tracker(double x) {
              weight = register_parameter("weight", torch::full({2, 2}, x));
              frozen = register_parameter("frozen", torch::full({3}, x), false);
              count = register_buffer("count",
                                      torch::full({}, static_cast<std::int64_t>(x), torch::kInt64));
            }
            torch::Tensor weight, frozen, count;
          };
          TestMember member(gang);
          Context ctx(member);
          std::shared_ptr<Tracker> model =
              ctx.prepare(std::make_shared<Tracker>(gang.rank() + 5.0));
          expect(model->weight.mean().item<double>() == 5 && model->frozen[0].item<double>() == 5,
                 "rank 0's parameters");
          expect(model->count.item<std::int64_t>() == 5, "rank 0's buffer");
          expect(model->named_parameters().contains("weight"), "the same name");
          (model->weight * (gang.rank() + 1.0)).sum().backward();
          expect(model->weight.grad()[0][0].item<double>() == 1.5, "the average of 1 and 2");
          expect(!model->frozen.grad().defined(), "no gradient for a frozen parameter");
        })) == "");
}

TEST_CASE("a rank killed in its step ends the others' backward",
          "[train][data_parallel][failure]") {
  const auto outcomes = ForkedGang::on_one_node(3).run([](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member, small_buckets());
    auto net = ctx.prepare(Net(kWidths));
    for (std::uint64_t step = 0;; ++step) {
      if (step == 5 && gang.rank() == 1) ::kill(::getpid(), SIGKILL);
      loss_of(net, gang.rank(), gang.size(), step).backward();
    }
  });
  for (int r : {0, 2}) {
    const auto& outcome = outcomes[static_cast<std::size_t>(r)];
    INFO(outcome.type << ": " << outcome.message);
    CHECK(outcome.type == "GangBroken");
    CHECK_THAT(outcome.message, Contains("rank 1"));
  }
}

TEST_CASE("a rank whose function throws ends the others' backward, with its rank",
          "[train][data_parallel][failure]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member, small_buckets());
    auto net = ctx.prepare(Net(kWidths));
    loss_of(net, gang.rank(), gang.size()).backward();
    if (gang.rank() == 1) throw std::runtime_error("no more data");
    loss_of(net, gang.rank(), gang.size()).backward();
  });
  CHECK(outcomes[1].message == "no more data");
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains("rank 1"));
}
