// Gradients are views of the memory that ranks average: backward adds to it, the ranks average it
// and the optimizer reads it, without a copy in between.
#include <troupe/train/context.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/rank_contexts.hpp"
#include "support/small_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace gradient_memory {
namespace {

using Places = std::map<std::string, const double*>;

/// Where the gradient of each parameter begins.
Places places_of(Net& net) {
  Places places;
  for (const auto& item : net->named_parameters())
    places[item.key()] = item.value().grad().const_data_ptr<double>();
  return places;
}

/// How many gradients do not begin where another one ends.
std::size_t pieces_of_memory(Net& net) {
  std::vector<const double*> ends;
  for (const auto& parameter : net->parameters())
    ends.push_back(parameter.grad().const_data_ptr<double>() + parameter.numel());
  std::size_t pieces = 0;
  for (const auto& [name, begin] : places_of(net)) pieces += !std::ranges::count(ends, begin);
  return pieces;
}

/// Counts the tensors that operators of any thread copy while it lives.
class CountedCopies {
 public:
  CountedCopies()
      : handle_(at::addGlobalCallback(
            at::RecordFunctionCallback(&CountedCopies::note).scopes({at::RecordScope::FUNCTION}))) {
    count_ = 0;
  }
  ~CountedCopies() { at::removeCallback(handle_); }
  CountedCopies(const CountedCopies&) = delete;
  CountedCopies& operator=(const CountedCopies&) = delete;

  int count() const { return count_; }

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
    const std::string name = function.name();
    if (name == "aten::copy_" || name == "aten::clone") ++count_;
    return nullptr;
  }

  inline static std::atomic<int> count_ = 0;
  at::CallbackHandle handle_;
};

int copies_in_backward(const Context& ctx, Net& net) {
  const auto loss = loss_of(net, ctx.rank(), ctx.world_size());
  const CountedCopies copies;
  loss.backward();
  return copies.count();
}

void backward(const Context& ctx, Net& net) {
  loss_of(net, ctx.rank(), ctx.world_size()).backward();
}

/// Runs two ranks whose net has had a backward, after which its buckets have the order in which
/// gradients came. -> failures() of the ranks.
std::string run_after_backward(const std::function<void(Context&, Net&)>& rank) {
  return run(2, small_buckets(), [&](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths));
    backward(ctx, net);
    rank(ctx, net);
  });
}

}  // namespace

TEST_CASE("gradients lie in the memory of their buckets, and stay there from step to step",
          "[train][data_parallel]") {
  CHECK(run_after_backward([](Context& ctx, Net& net) {
          auto optimizer = ctx.prepare(torch::optim::SGD(net->parameters(), 0.1));
          const auto places = places_of(net);
          const auto pieces = pieces_of_memory(net);
          // The last layer, the bias and the weight of the middle one, which fills a bucket, and
          // the first layer.
          expect(pieces == 4, [&] { return fmt::format("{} pieces of memory", pieces); });
          for (const bool set_to_none : {false, true, false}) {
            optimizer.step();
            optimizer.zero_grad(set_to_none);
            backward(ctx, net);
            expect(places_of(net) == places, "each gradient has the memory of the first backward");
          }
        }) == "");
}

TEST_CASE("backward copies no gradient that is kept, and a new one once",
          "[train][data_parallel]") {
  CHECK(run_after_backward([](Context& ctx, Net& net) {
          auto alone = Net(kWidths);
          const auto of_the_model = copies_in_backward(ctx, alone);
          const auto expect_copies = [&](int wanted, const char* when) {
            const auto copies = copies_in_backward(ctx, net) - of_the_model;
            expect(copies == wanted, [&] { return fmt::format("{} copies {}", copies, when); });
          };
          net->zero_grad(false);
          expect_copies(0, "into gradients that were set to zero");
          {
            const auto guard = ctx.no_sync();
            expect_copies(0, "under no_sync");
          }
          expect_copies(0, "into gradients that were added to");
          net->zero_grad(true);
          expect_copies(6, "of gradients that autograd has made");
        }) == "");
}

}  // namespace gradient_memory
