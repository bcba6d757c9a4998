// The buckets of gradients follow the order in which the first backward came to them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/utils.h>
#include <troupe/train/communicator.hpp>

#include "parallel/averaging/reducer.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/small_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

/// In the order of the layers, or in the other one.
std::vector<NamedTensor> parameters_of(Net& net, bool reversed) {
  std::vector<NamedTensor> parameters;
  for (const auto& item : net->named_parameters()) parameters.push_back({item.key(), item.value()});
  if (reversed) std::reverse(parameters.begin(), parameters.end());
  return parameters;
}

void expect_average(Net& net, int ranks, std::uint64_t step, const std::string& when) {
  Net reference(kWidths);
  loss_of(reference, 0, 1, step).backward();
  for (const auto& item : reference->named_parameters()) {
    expect(torch::allclose(net->named_parameters()[item.key()].grad(), item.value().grad(), 1e-9,
                           1e-12),
           fmt::format("the average of {} over {} ranks {}", item.key(), ranks, when));
  }
}

}  // namespace

// Backward is held in the layer that it comes to last until a bucket has been reduced: in the first
// backward the first bucket has that layer's gradients, and would be waited for in vain.
TEST_CASE("from the second backward on the buckets are filled in the order of the first",
          "[train][data_parallel]") {
  const bool set_to_none = GENERATE(true, false);
  CHECK(failures(ForkedGang::on_one_node(2).run([=](GangContext& gang) {
          auto comm = make_host_communicator(gang);
          Net net(kWidths);
          std::atomic<int> reduced{0};
          const auto queue = std::make_shared<ReductionQueue>(*comm);
          auto reducer = Reducer::make(queue, *comm, parameters_of(net, /*reversed=*/true),
                                       {.options = small_buckets().data_parallel,
                                        .trace = [&](Reducer::Event event, std::size_t) {
                                          if (event == Reducer::Event::Reduced)
                                            reduced.fetch_add(1);
                                        }});
          int reduced_before_the_last = 0;
          std::uint64_t step = 0;
          net->layers[0]->weight.register_hook([&](const at::Tensor&) {
            if (step > 0)
              expect(eventually([&] { return reduced.load() > 0; }), "a bucket before the end");
            reduced_before_the_last = reduced.load();
          });
          for (; step < 3; ++step) {
            net->zero_grad(set_to_none);
            reduced = 0;
            loss_of(net, gang.rank(), gang.size(), step).backward();
            expect((reduced_before_the_last > 0) == (step > 0), "an overlap from then on");
            expect_average(net, gang.size(), step, fmt::format("in step {}", step));
          }
        })) == "");
}

TEST_CASE("buckets that are made anew keep what had accumulated", "[train][data_parallel]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          auto comm = make_host_communicator(gang);
          Net net(kWidths);
          const auto queue = std::make_shared<ReductionQueue>(*comm);
          auto reducer = Reducer::make(queue, *comm, parameters_of(net, /*reversed=*/true),
                                       {.options = small_buckets().data_parallel});
          const auto memory_of_gradient = [&] {
            return net->layers[0]->weight.grad().storage().data();
          };
          loss_of(net, gang.rank(), gang.size()).backward();
          const auto* in_new_bucket = memory_of_gradient();
          loss_of(net, gang.rank(), gang.size()).backward();
          expect(memory_of_gradient() == in_new_bucket, "gradients that have moved once");
          Net reference(kWidths);
          loss_of(reference, 0, 1).backward();
          for (const auto& item : reference->named_parameters()) {
            expect(torch::allclose(net->named_parameters()[item.key()].grad(),
                                   2 * item.value().grad(), 1e-9, 1e-12),
                   item.key() + " of two backwards");
          }
        })) == "");
}

TEST_CASE("rank 0's order decides where the ranks' orders differ", "[train][data_parallel]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          auto comm = make_host_communicator(gang);
          const std::vector<std::int64_t> widths{6, 40};
          Net net(widths);
          Net other(widths, 2);
          auto parameters = parameters_of(net, false);
          for (auto& [name, tensor] : parameters_of(other, false))
            parameters.push_back({"other." + name, tensor});
          const auto queue = std::make_shared<ReductionQueue>(*comm);
          auto reducer =
              Reducer::make(queue, *comm, parameters, {.options = small_buckets().data_parallel});
          for (int step = 0; step < 3; ++step) {
            net->zero_grad();
            other->zero_grad();
            auto* first = gang.rank() == 0 ? &net : &other;
            auto* second = gang.rank() == 0 ? &other : &net;
            const auto x = rows(3, 6, 4);
            // Autograd comes first to what was computed last.
            const auto before = (*first)->forward(x).sum();
            const auto after = (*second)->forward(x).sum();
            (before + after * (gang.rank() + 1.0)).backward();
            const auto of_net = net->layers[0]->bias.grad();
            const auto of_other = other->layers[0]->bias.grad();
            expect(torch::allclose(of_net, torch::full({40}, 3 * (1 + 2) / 2.0, torch::kFloat64)),
                   "the average of net's bias");
            expect(torch::allclose(of_other, torch::full({40}, 3.0, torch::kFloat64)),
                   "the average of the other's bias");
          }
        })) == "");
}
