// What lies on a rank's device, and what in main memory (ZeroOptions::offload_optimizer,
// _parameters).
#include <troupe/train/context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/adam.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/other_device.hpp"
#include "support/parameter_values.hpp"
#include "support/rank_contexts.hpp"
#include "support/scratch.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"

#include "offload_training.hpp"

using namespace offload_training;
using Catch::Contains;

namespace {

/// How a gang trains.
struct Way {
  ZeroOptions zero = {};
  Type type = Type::Float32;  ///< a smaller one comes with master weights
  bool elsewhere = true;      ///< on other_device(), and not on the CPU
  int ranks = 2;

  ContextOptions options() const { return options_of(zero, type); }
  std::string text() const {
    return fmt::format("stage {}{}{}, type {}, {} ranks", zero.stage,
                       zero.offload_optimizer ? ", optimizer" : "",
                       zero.offload_parameters ? " and parameters in main memory" : "",
                       static_cast<int>(type), ranks);
  }
};

constexpr double kTolerance = 1e-6;  // the ranks' gradients are added in other orders

/// -> failures() of the ranks.
std::string run_as(const Way& way, const std::function<void(Context&)>& rank,
                   const Folders& folders = {}) {
  const auto device = way.elsewhere ? std::optional(other_device()) : std::nullopt;
  return run(way.ranks, way.options(), rank, folders, device);
}

/// Of the ways, whose results are compared with those of the first; "" if they are the same.
std::string difference(const std::vector<Way>& ways, Optimizer (*make)(Context&, Net&)) {
  const KeptValues first;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto failed = run_as(ways[i], [&](Context& ctx) {
      const auto values = trained(ctx, make);
      if (i == 0)
        first.keep(ctx, values);
      else
        first.expect_same_as(values, kTolerance, "placed otherwise");
    });
    if (!failed.empty()) return ways[i].text() + ": " + failed;
  }
  return "";
}

std::int64_t elements_of(const Net& net) {
  std::int64_t elements = 0;
  for (const auto& parameter : net->parameters()) elements += parameter.numel();
  return elements;
}

/// `bytes` is `expected` but for the padding of buckets.
void expect_about(std::int64_t bytes, std::int64_t expected, const std::string& what) {
  expect(bytes >= expected && bytes <= expected + expected / 50 + 4096,
         [&] { return fmt::format("{}: {} bytes, expected {}", what, bytes, expected); });
}

const std::vector<std::int64_t> kWide{kWidths.front(), 300, 200, kWidths.back()};

}  // namespace

TEST_CASE("a training on another device than the CPU has the CPU's results",
          "[train][zero][placement]") {
  std::vector<Way> ways{{.elsewhere = false}};
  for (const int stage : {0, 1, 2, 3}) ways.push_back({.zero = {.stage = stage}});
  CHECK(difference(ways, prepared_adam) == "");
}

TEST_CASE("a training whose optimizer is in main memory has the results of one on the device",
          "[train][zero][placement]") {
  for (const auto type : {Type::Float32, Type::BFloat16, Type::Float16}) {
    for (const int ranks : {1, 2, 3}) {
      std::vector<Way> ways{{.type = type, .elsewhere = false, .ranks = ranks}};
      for (const int stage : {1, 2, 3})
        ways.push_back({.zero = optimizer_of(stage), .type = type, .ranks = ranks});
      ways.push_back({.zero = kParameters, .type = type, .ranks = ranks});
      CHECK(difference(ways, ranks == 3 ? prepared_adamw : prepared_adam) == "");
    }
  }
  CHECK(difference({{.elsewhere = false}, {.zero = optimizer_of(1)}, {.zero = kParameters}},
                   prepared_sgd) == "");
}

TEST_CASE("where ranks train on CPUs offloading changes nothing", "[train][zero][placement]") {
  CHECK(difference({{.elsewhere = false},
                    {.zero = optimizer_of(2), .elsewhere = false},
                    {.zero = kParameters, .elsewhere = false}},
                   prepared_adam) == "");
}

TEST_CASE("what a rank has on its device between steps is what its stage leaves there",
          "[train][zero][placement]") {
  struct Case {
    ZeroOptions zero;
    double bytes;          // on the device, for each element
    double small = bytes;  // the same in bfloat16 with master weights
  };
  // Parameters, gradients and the two averages of Adam: on 2 ranks.
  for (const auto& [zero, bytes, small] :
       std::vector<Case>{{{.stage = 0}, 16, 16},
                         {{.stage = 1}, 8 + 8 / 2., 4 + 12 / 2.},
                         {{.stage = 2}, 4 + 12 / 2., 2 + 14 / 2.},
                         {{.stage = 3}, 16 / 2., 16 / 2.},
                         {optimizer_of(1), 8, 4},
                         {optimizer_of(2), 4, 2},
                         {optimizer_of(3), 4 / 2., 2 / 2.},
                         {kParameters, 0, 0}}) {
    for (const auto type : {Type::Float32, Type::BFloat16}) {
      const Way way{.zero = zero, .type = type};
      INFO(way.text());
      CHECK(run_as(way, [&, of_element = type == Type::Float32 ? bytes : small](Context& ctx) {
              auto net = float_net(kWide);
              const auto elements = static_cast<double>(elements_of(net));
              ctx.prepare(net);
              auto optimizer = ctx.prepare(torch::optim::Adam(net->parameters(), 0.01));
              for (std::uint64_t i = 0; i < 2; ++i) {
                optimizer.zero_grad();
                loss_in(ctx, net, i).backward();
                optimizer.step();
              }
              expect_about(other_bytes(), static_cast<std::int64_t>(of_element * elements),
                           "on the device");
            }) == "");
    }
  }
}

TEST_CASE("to prepare a model takes no more of the device than to train it",
          "[train][zero][placement]") {
  struct Case {
    ZeroOptions zero;
    Type type;
    double bytes;  // for each element: values, averages of gradients and master weights
  };
  for (const auto& [zero, type, bytes] :
       std::vector<Case>{{{.stage = 3}, Type::Float32, 4 / 2. + 4 / 2.},
                         {{.stage = 3}, Type::BFloat16, 2 / 2. + 2 / 2. + 4 / 2.},
                         {{.stage = 2}, Type::BFloat16, 2 + 2 / 2. + 4 / 2.},
                         {optimizer_of(2), Type::BFloat16, 2},
                         {optimizer_of(3), Type::BFloat16, 2 / 2.},
                         {kParameters, Type::BFloat16, 0}}) {
    const Way way{.zero = zero, .type = type};
    INFO(way.text());
    CHECK(run_as(way, [&, of_element = bytes](Context& ctx) {
            // Of many layers, so that a bucket is a small part of all.
            auto net = float_net(std::vector<std::int64_t>(31, 100));
            const auto elements = static_cast<double>(elements_of(net));
            forget_other_peak();
            ctx.prepare(net);
            auto optimizer = ctx.prepare(torch::optim::Adam(net->parameters(), 0.01));
            const auto allowed = of_element * elements + 0.2 * elements;
            expect(static_cast<double>(other_peak_bytes()) <= allowed, [&] {
              return fmt::format("{} bytes at the most, expected {}", other_peak_bytes(), allowed);
            });
          }) == "");
  }
}

TEST_CASE("a training goes on from a checkpoint of one that was placed otherwise",
          "[train][zero][placement][checkpoint]") {
  const auto train = [](Context& ctx, std::uint64_t first, std::uint64_t end) {
    auto net = ctx.prepare(float_net());
    const auto optimizer = prepared_adam(ctx, net);
    for (auto i = first; i < end; ++i) offloaded_step(ctx, net, *optimizer, i);
    ctx.checkpoint(net, *optimizer);
    return plain_values(ctx, net);
  };
  for (const auto type : {Type::Float32, Type::BFloat16}) {
    // Sums over other ranks are rounded otherwise in bfloat16.
    const int ranks = type == Type::Float32 ? 3 : 2;
    const std::vector<Way> ways{{.type = type, .elsewhere = false},
                                {.zero = optimizer_of(1), .type = type},
                                {.zero = kParameters, .type = type, .ranks = ranks}};
    const Scratch scratch;
    const KeptValues unbroken;
    REQUIRE(run_as(ways.front(), [&](Context& ctx) { unbroken.keep(ctx, train(ctx, 0, 4)); }) ==
            "");
    for (std::size_t writer = 0; writer < ways.size(); ++writer) {
      const auto storage = scratch.path() / std::to_string(writer);
      const auto first_half = [&](Context& ctx) { train(ctx, 0, 2); };
      CHECK(run_as(ways[writer], first_half, {.storage = storage}) == "");
      for (const auto& reader : ways) {
        INFO(ways[writer].text() << ", and then " << reader.text());
        const auto second_half = [&](Context& ctx) {
          unbroken.expect_same_as(train(ctx, 2, 4), kTolerance, "a run that went on");
        };
        CHECK(run_as(reader, second_half, {.from = latest_checkpoint(storage)}) == "");
      }
    }
  }
}

TEST_CASE(
    "a checkpoint that is written behind an offloaded training has the values of its beginning",
    "[train][zero][placement][checkpoint]") {
  for (const auto& zero : {optimizer_of(1), optimizer_of(3), kParameters}) {
    const Scratch scratch;
    const Way way{.zero = zero, .type = Type::Float16};
    INFO(way.text());
    const KeptValues last;
    const auto write = [&](Context& ctx) {
      auto net = ctx.prepare(float_net());
      const auto optimizer = prepared_adam(ctx, net);
      for (std::uint64_t i = 0; i < 2; ++i) offloaded_step(ctx, net, *optimizer, i);
      const auto saving = ctx.begin_checkpoint(net, *optimizer);
      for (std::uint64_t i = 2; i < 4; ++i) offloaded_step(ctx, net, *optimizer, i);
      expect(saving.wait().error.empty(), "it is written");
      last.keep(ctx, plain_values(ctx, net));
    };
    REQUIRE(run_as(way, write, {.storage = scratch.path()}) == "");
    const auto go_on = [&](Context& ctx) {
      auto net = ctx.prepare(float_net());
      const auto optimizer = prepared_adam(ctx, net);
      for (std::uint64_t i = 2; i < 4; ++i) offloaded_step(ctx, net, *optimizer, i);
      last.expect_same_as(plain_values(ctx, net), kTolerance, "a run that went on");
    };
    CHECK(run_as(way, go_on, {.from = latest_checkpoint(scratch.path())}) == "");
  }
}

TEST_CASE("a model whose parameters are in several places is cut as one",
          "[train][zero][placement]") {
  for (const int stage : {1, 2, 3}) {
    const Way way{.zero = {.stage = stage}};
    INFO(way.text());
    CHECK(run_as(way, [](Context& ctx) {
            auto net = float_net();
            net->layers[1]->to(ctx.device());
            ctx.prepare(net);
            const auto optimizer = prepared_sgd(ctx, net);
            offloaded_step(ctx, net, *optimizer, 0);
            // Prepared again, with new values in main memory in the place of some.
            net->zero_grad();
            auto weight = net->layers[2]->weight;
            weight.set_data(torch::zeros(weight.sizes()));
            ctx.prepare(net);
            const auto again = prepared_sgd(ctx, net);
            offloaded_step(ctx, net, *again, 1);
            for (const auto& values : plain_values(ctx, net))
              expect(values.isfinite().all().item<bool>(), "it was trained");
            expect(plain_values(ctx, net)[4].abs().max().item<double>() < 1, "from the new values");
          }) == "");
  }
}

TEST_CASE("values in the place of a parameter's are trained on, wherever the rank's part lies",
          "[train][zero][placement]") {
  const auto replaced = [](Context& ctx) {
    auto net = ctx.prepare(float_net());
    const auto optimizer = prepared_sgd(ctx, net);
    offloaded_step(ctx, net, *optimizer, 0);
    auto weight = net->layers[1]->weight;
    weight.set_data(torch::full(weight.sizes(), 0.25).to(ctx.device()));
    offloaded_step(ctx, net, *optimizer, 1);
    return plain_values(ctx, net);
  };
  const KeptValues first;
  REQUIRE(run_as({.elsewhere = false}, [&](Context& ctx) { first.keep(ctx, replaced(ctx)); }) ==
          "");
  for (const auto& zero : {optimizer_of(1), optimizer_of(3), kParameters}) {
    const Way way{.zero = zero};
    INFO(way.text());
    CHECK(run_as(way, [&](Context& ctx) {
            first.expect_same_as(replaced(ctx), kTolerance, "placed otherwise");
          }) == "");
  }
}

TEST_CASE("to prepare a model again takes no more of the device than its part",
          "[train][zero][placement]") {
  CHECK(run_as({.zero = kParameters}, [](Context& ctx) {
          auto net = float_net(std::vector<std::int64_t>(31, 100));
          ctx.prepare(net);
          forget_other_peak();
          ctx.prepare(net);
          expect(other_peak_bytes() <= elements_of(net), [&] {  // of 4 bytes each
            return fmt::format("{} bytes at the most", other_peak_bytes());
          });
        }) == "");
}

TEST_CASE("options that place what a stage does not cut are refused", "[train][zero][placement]") {
  const auto error_of = [](ZeroOptions zero) {
    return run_as({.zero = zero, .ranks = 1}, [](Context&) {});
  };
  CHECK_THAT(error_of({.stage = 0, .offload_optimizer = true}),
             Contains("offload_optimizer is set, and zero.stage is 0"));
  CHECK_THAT(error_of({.stage = 3, .offload_parameters = true}),
             Contains("zero.stage is 3 and zero.offload_optimizer is false"));
  CHECK_THAT(error_of({.stage = 2, .offload_optimizer = true, .offload_parameters = true}),
             Contains("zero.stage is 2 and zero.offload_optimizer is true"));
}
