#include <troupe/train/context.hpp>

#include <memory>
#include <string>
#include <vector>

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

const std::vector<std::int64_t> kWidths{6, 40, 4};

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
    Net net(kWidths);
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
    ctx.prepare(Net(kWidths));
  }),
                "on rank 1 gradient 1 is \"layer1.weight in bucket 1\", on rank 0 it is "
                "\"layer1.weight in bucket 0\"");
}

TEST_CASE("ranks that average in other ways are refused, with the rank and the option",
          "[train][data_parallel][agreement]") {
  struct Other {
    DataParallelOptions options;
    const char* why;
  };
  const std::vector<Other> others{
      {{.find_unused_parameters = true},
       "on rank 1 option 0 is \"find_unused_parameters is true\", on rank 0 it is "
       "\"find_unused_parameters is false\""},
      {{.broadcast_buffers = false},
       "on rank 1 option 1 is \"broadcast_buffers is false\", on rank 0 it is "
       "\"broadcast_buffers is true\""},
      {{.compression = GradientCompression::BFloat16},
       "on rank 1 option 2 is \"compression is BFloat16\", on rank 0 it is "
       "\"compression is None\""}};
  const auto& other = others.at(GENERATE(0U, 1U, 2U));
  check_refused(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    TestMember member(gang);
    ContextOptions options;
    if (gang.rank() == 1) options.data_parallel = other.options;
    Context ctx(member, options);
    ctx.prepare(Net(kWidths));
  }),
                other.why);
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
