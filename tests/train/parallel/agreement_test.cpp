#include <troupe/train/context.hpp>

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

const std::vector<std::int64_t> kAgreedWidths{6, 40, 4};

/// A layer, and a count of the batches that it has seen.
struct Counted : torch::nn::Module {
  Counted(std::int64_t counts, torch::Dtype type) {
    layer = register_module("layer", torch::nn::Linear(2, 2));
    seen = register_buffer("seen", torch::zeros({counts}, type));
  }
  torch::nn::Linear layer{nullptr};
  torch::Tensor seen;
};

void check_refused(const std::vector<Outcome>& outcomes, const std::string& why) {
  for (const auto& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.type == "invalid_argument");
    CHECK_THAT(outcome.message, Contains(why));
  }
}

}  // namespace

TEST_CASE("ranks that freeze different parameters are refused, with the rank and the parameter",
          "[train][data_parallel][agreement]") {
  check_refused(ForkedGang::on_one_node(3).run([](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member);
    Net net(kAgreedWidths);
    // As many parameters want gradients on every rank, and they have as many elements.
    net->layers[gang.rank() == 1 ? 1 : 0]->bias.set_requires_grad(false);
    ctx.prepare(net);
  }),
                "on rank 1 parameter 1 is \"layer0.bias [40] Double\", on rank 0 it is "
                "\"layer0.bias [40] Double frozen\"");
}

TEST_CASE("ranks whose buffers differ are refused, with the rank and the buffer",
          "[train][data_parallel][agreement]") {
  const bool by_shape = GENERATE(true, false);
  check_refused(
      ForkedGang::on_one_node(2).run([by_shape](GangContext& gang) {
        TestMember member(gang);
        Context ctx(member);
        const bool other = gang.rank() == 1;
        // The same number of bytes, so that no later call could tell.
        ctx.prepare(std::make_shared<Counted>(
            other && by_shape ? 2 : 1, other && !by_shape ? torch::kFloat64 : torch::kInt64));
      }),
      by_shape ? "on rank 1 buffer 0 is \"seen [2] Long\", on rank 0 it is \"seen [1] Long\""
               : "on rank 1 buffer 0 is \"seen [1] Double\", on rank 0 it is \"seen [1] Long\"");
}

TEST_CASE("ranks with different buckets are refused, with the rank and the parameter",
          "[train][data_parallel][agreement]") {
  check_refused(ForkedGang::on_one_node(2).run([](GangContext& gang) {
    TestMember member(gang);
    ContextOptions options;
    options.data_parallel.first_bucket_bytes = gang.rank() == 1 ? 1000 : 100'000;
    Context ctx(member, options);
    ctx.prepare(Net(kAgreedWidths));
  }),
                "on rank 1 gradient 1 is \"layer1.weight in bucket 1\", on rank 0 it is "
                "\"layer1.weight in bucket 0\"");
}

TEST_CASE("ranks with other options are refused, with the rank and the option",
          "[train][data_parallel][agreement]") {
  using Type = MixedPrecision::Type;
  struct Other {
    int number;
    const char *name, *there, *here;
    ContextOptions options, on_rank_0 = {};
  };
  const auto [number, name, there, here, options, on_rank_0] = GENERATE(
      Other{0,
            "find_unused_parameters",
            "true",
            "false",
            {.data_parallel = {.find_unused_parameters = true}}},
      Other{
          1, "broadcast_buffers", "false", "true", {.data_parallel = {.broadcast_buffers = false}}},
      Other{2,
            "compression",
            "BFloat16",
            "None",
            {.data_parallel = {.first_bucket_bytes = 1000,  // which is told behind it
                               .compression = GradientCompression::BFloat16}}},
      Other{3, "zero.stage", "1", "0", {.zero = {.stage = 1}}},
      Other{3, "zero.stage", "3", "0", {.zero = {.stage = 3}}},
      Other{7,
            "zero.prefetch",
            "false",
            "true",
            {.zero = {.stage = 3, .prefetch = false}},
            {.zero = {.stage = 3}}},
      Other{4,
            "mixed_precision.type",
            "BFloat16",
            "Float",
            {.mixed_precision = {.type = Type::BFloat16, .master_weights = true}}},
      Other{7,
            "mixed_precision.loss_scale",
            "initial 8, window 1000, hysteresis 2, smallest 1, fixed 0",
            "initial 65536, window 1000, hysteresis 2, smallest 1, fixed 0",
            {.mixed_precision = {.type = Type::Float16, .loss_scale = {.initial = 8}}},
            {.mixed_precision = {.type = Type::Float16}}},
      Other{6,
            "scale_learning_rates",
            "Linear",
            "None",
            {.scale_learning_rates = LearningRateScaling::Linear}});
  check_refused(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member, gang.rank() == 1 ? options : on_rank_0);
    ctx.prepare(Net(kAgreedWidths));
  }),
                fmt::format("on rank 1 option {} is \"{} is {}\", on rank 0 it is \"{} is {}\"",
                            number, name, there, name, here));
}

TEST_CASE("ranks whose parameters lie otherwise are refused, with the rank and the parameter",
          "[train][data_parallel][agreement]") {
  struct Square : torch::nn::Module {
    explicit Square(bool turned) {
      const auto values = torch::ones({3, 3});
      weight = register_parameter("weight", turned ? values.t() : values);
    }
    torch::Tensor weight;
  };
  const int stage = GENERATE(0, 2, 3);
  check_refused(ForkedGang::on_one_node(2).run([stage](GangContext& gang) {
    TestMember member(gang);
    Context ctx(member, {.zero = {.stage = stage}});
    ctx.prepare(std::make_shared<Square>(gang.rank() == 1));
  }),
                "on rank 1 parameter 0 is \"weight [3, 3] Float with strides [1, 3]\", on rank 0 "
                "it is \"weight [3, 3] Float\"");
}

TEST_CASE("a buffer whose conjugate is only noted on one rank has rank 0's values on all",
          "[train][agreement]") {
  struct Spectrum : torch::nn::Module {
    explicit Spectrum(bool noted) {
      const auto values = torch::complex(torch::zeros({3}), torch::ones({3}));
      seen = register_buffer("seen", noted ? values.conj() : values);
    }
    torch::Tensor seen;
  };
  const int noted_on = GENERATE(0, 1);
  CHECK(failures(ForkedGang::on_one_node(2).run([noted_on](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member);
          auto model = ctx.prepare(std::make_shared<Spectrum>(gang.rank() == noted_on));
          const auto expected = torch::full({3}, noted_on == 0 ? -1.0F : 1.0F);
          expect(torch::equal(torch::imag(model->seen).resolve_neg(), expected), "rank 0's values");
        })) == "");
}
