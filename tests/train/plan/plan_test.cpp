// What a plan predicts, and what it says. Its numbers are compared with those of the ZeRO paper,
// and with sums that are written out here.
#include <troupe/train/plan.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "plan/advice.hpp"
#include "plan/memory.hpp"
#include "plan/words.hpp"
#include "support/catch.hpp"

namespace train = troupe::train;
using Catch::Contains;

namespace {

constexpr std::uint64_t kGb = 1'000'000'000;
constexpr std::uint64_t kTb = 1000 * kGb;
const train::MixedPrecision kBFloat16{.type = train::MixedPrecision::Type::BFloat16};
const train::MixedPrecision kMasterWeights{.type = train::MixedPrecision::Type::BFloat16,
                                           .master_weights = true};

/// GPUs of 80 GB, eight to a node of so much main memory.
train::PlanOptions gpus(int ranks, std::uint64_t main_memory, train::MixedPrecision precision) {
  return {.ranks = ranks,
          .ranks_per_node = 8,
          .device_memory = 80 * kGb,
          .main_memory = main_memory,
          .mixed_precision = precision};
}

std::uint64_t kept(const train::MemoryUse& use) {
  return use.parameters + use.gradients + use.optimizer;
}

/// docs/train.md shows this text.
const std::string kThirteenBillion =
    R"(13.0 billion trained parameters, bfloat16 with master weights, on 4 ranks, 4 on each node
each rank: a GPU of 80.0 GB, of which 8.00 GB for activations; 250.0 GB of main memory

GB of each rank               parameters  gradients  optimizer  passing  on GPU  main memory  fits
stage 0                             26.0       26.0      156.0     52.9   260.9            0    no
stage 1                             26.0       26.0       39.0     20.4   111.4            0    no
stage 2                             26.0       6.50       39.0     0.91    72.4            0    no
stage 3                             6.50       6.50       39.0     1.77    53.8            0   yes
stage 2, optimizer offloaded        26.0          0          0     0.91    26.9         45.8   yes
stage 3, optimizer offloaded        6.50          0          0     1.77    8.27         45.8   yes
stage 3, all offloaded                 0          0          0     1.77    1.77         52.3   yes

)";

/// Its name, or "nothing".
std::string recommended(const train::Plan& plan) {
  return plan.recommended ? train::name_of(plan.strategies.at(*plan.recommended).zero) : "nothing";
}

/// 1,000 elements on four ranks: parts of 250, buckets of 512 bytes.
constexpr train::ModelSize kSmallModel{.trained = 1000, .largest = 100, .other_bytes = 24};
train::PlanOptions small_options(train::MixedPrecision precision) {
  return {.ranks = 4,
          .device_memory = kGb,
          .main_memory = kGb,
          .mixed_precision = precision,
          .data_parallel = {.first_bucket_bytes = 128, .bucket_bytes = 512}};
}

/// parameters, gradients, optimizer, passing
using Numbers = std::vector<std::uint64_t>;
Numbers numbers(const train::MemoryUse& use) {
  return {use.parameters, use.gradients, use.optimizer, use.passing};
}

/// 220 trained elements, of which 200 have two names, 105 frozen ones, and buffers of 48 bytes.
struct TiedNet : torch::nn::Module {
  explicit TiedNet(torch::Device device) {
    const auto weight = register_parameter("weight", torch::empty({20, 10}, device));
    register_parameter("bias", torch::empty({20}, device));
    register_parameter("frozen", torch::empty({105}, device), /*requires_grad=*/false);
    register_buffer("mean", torch::empty({10}, device));
    register_buffer("steps", torch::empty({}, at::dtype(at::kLong).device(device)));
    tied = register_module("tied", std::make_shared<torch::nn::Module>());
    tied->register_parameter("weight", weight);
  }
  std::shared_ptr<torch::nn::Module> tied;
};

}  // namespace

TEST_CASE("a plan keeps what figure 1 of the ZeRO paper keeps", "[train][plan]") {
  const auto plan = train::plan({.trained = 7'500'000'000}, gpus(64, kTb, kMasterWeights));
  std::vector<double> gb;
  for (int stage = 0; stage <= 3; ++stage)
    gb.push_back(static_cast<double>(kept(plan.strategies.at(stage).device)) / kGb);
  CHECK(gb[0] == Approx(120).margin(0.05));
  CHECK(gb[1] == Approx(31.4).margin(0.05));
  CHECK(gb[2] == Approx(16.6).margin(0.05));
  CHECK(gb[3] == Approx(1.88).margin(0.005));
}

TEST_CASE("each stage of ZeRO is predicted as this library does it", "[train][plan]") {
  const auto plan = train::plan(kSmallModel, small_options({}));
  REQUIRE(plan.strategies.size() == 7);
  const auto in = [&](std::size_t strategy) { return numbers(plan.strategies[strategy].device); };
  CHECK(in(0) == Numbers{4024, 4000, 8000, 800});
  CHECK(in(1) == Numbers{4024, 4000, 2000, 800 + 1000});
  CHECK(in(2) == Numbers{4024, 1000, 2000, 4 * 512 + 128});
  CHECK(in(3) == Numbers{1024, 1000, 2000, 8 * 512 + 128});
  for (std::size_t i = 0; i <= 3; ++i) CHECK(plan.strategies[i].main.total() == 0);

  const auto narrow = train::plan(kSmallModel, small_options(kMasterWeights));
  const auto with_masters = [&](std::size_t strategy) {
    return numbers(narrow.strategies.at(strategy).device);
  };
  CHECK(with_masters(0) == Numbers{2024, 2000, 12000, 4000 + 800});
  CHECK(with_masters(1) == Numbers{2024, 2000, 3000, 1000 + 800 + 500});
  CHECK(with_masters(2) == Numbers{2024, 500, 3000, 4 * 512 + 128});
  CHECK(with_masters(3) == Numbers{524, 500, 3000, 8 * 512 + 128});
}

TEST_CASE("offloaded tensors take memory of the device for their buckets alone", "[train][plan]") {
  const auto plan = train::plan(kSmallModel, small_options({}));
  const auto& gradients = plan.strategies.at(4);
  CHECK(numbers(gradients.device) == Numbers{4024, 0, 0, 4 * 512 + 128});
  CHECK(numbers(gradients.main) == Numbers{1000, 1000, 2000, 4 * 32 + 2 * 4 * 32});
  const auto& cut = plan.strategies.at(5);
  CHECK(numbers(cut.device) == Numbers{1024, 0, 0, 8 * 512 + 128});
  CHECK(numbers(cut.main) == Numbers{1000, 1000, 2000, 4 * 32 + 2 * 4 * 32});
  const auto& all = plan.strategies.at(6);
  CHECK(numbers(all.device) == Numbers{24, 0, 0, 8 * 512 + 128});
  CHECK(numbers(all.main) == Numbers{1000, 1000, 2000, 4 * 32 + 2 * 4 * 32});

  const auto narrow = train::plan(kSmallModel, small_options(kMasterWeights));
  CHECK(numbers(narrow.strategies.at(5).main) == Numbers{0, 500, 3000, 4 * 64 + 2 * 4 * 64});
  CHECK(numbers(narrow.strategies.at(6).main) == Numbers{500, 500, 3000, 4 * 64 + 2 * 4 * 64});
}

TEST_CASE("one rank has nothing to cut, and can still offload", "[train][plan]") {
  auto options = small_options({});
  options.ranks = 1;
  const auto plan = train::plan(kSmallModel, options);
  REQUIRE(plan.strategies.size() == 2);
  CHECK(numbers(plan.strategies[0].device) == Numbers{4024, 4000, 8000, 800});
  CHECK(plan.strategies[1].zero.stage == 1);
  CHECK(plan.strategies[1].zero.offload_optimizer);
  CHECK(numbers(plan.strategies[1].device) == Numbers{4024, 4000, 0, 2 * 512});
  CHECK(numbers(plan.strategies[1].main) == Numbers{4000, 0, 8000, 4000 + 800});

  options.device = train::PlanOptions::Device::Cpu;
  CHECK(train::plan(kSmallModel, options).strategies.size() == 1);
}

TEST_CASE("autocast keeps what it has converted until backward", "[train][plan]") {
  const auto plain = train::plan(kSmallModel, small_options({}));
  const auto converts = train::plan(kSmallModel, small_options(kBFloat16));
  CHECK(converts.strategies[0].device.passing == 2000 + 400);
  for (const std::size_t i : {2, 3, 6})
    CHECK(converts.strategies[i].device.passing == plain.strategies[i].device.passing + 2000);
  CHECK_THAT(converts.text(), Contains("bfloat16 by autocast"));
}

TEST_CASE("a bucket is no larger than the model, and no smaller than a parameter",
          "[train][plan]") {
  auto options = small_options({});
  options.data_parallel.bucket_bytes = SIZE_MAX;
  CHECK(train::plan(kSmallModel, options).strategies[3].device.passing == 8 * 4000 + 1000);
  options.data_parallel = {.first_bucket_bytes = 1, .bucket_bytes = 1};
  CHECK(train::plan(kSmallModel, options).strategies[3].device.passing == 8 * 400 + 100);
}

TEST_CASE("the largest parameter of known transformers is met within a factor of two",
          "[train][plan]") {
  const auto close = [](std::uint64_t trained, std::uint64_t largest) {
    const auto assumed = train::largest_of_transformer(trained);
    return assumed <= 2 * largest && largest <= 2 * assumed;
  };
  CHECK(close(13 * kGb, 4ull * 5120 * 5120));     // GPT-3 13B
  CHECK(close(70 * kGb, 8192ull * 28672));        // Llama 2 70B
  CHECK(close(175 * kGb, 4ull * 12288 * 12288));  // GPT-3
  CHECK(train::largest_of_transformer(1) == 1);
}

TEST_CASE("13 billion parameters fit on four GPUs of 80 GB by stage 3 alone", "[train][plan]") {
  // [plan]
  const auto plan = train::plan(
      {.trained = 13'000'000'000},
      {.ranks = 4,
       .device_memory = 80'000'000'000,
       .main_memory = 1'000'000'000'000,
       .mixed_precision = {.type = train::MixedPrecision::Type::BFloat16, .master_weights = true}});
  const std::string text = plan.text();
  // [/plan]
  // Stage 2 keeps 2P + 14P/4 = 71.5 GB of the 72 that activations leave, and needs buckets beside.
  CHECK(recommended(plan) == "stage 3");
  CHECK(plan.advice ==
        "Use .zero = {.stage = 3}, the fastest that fits: it takes 53.8 GB of the 80.0 GB that "
        "each rank's GPU has, beside 8.00 GB for activations.");
  CHECK(text == kThirteenBillion + plan.advice + "\n");
}

TEST_CASE("70 billion parameters fit on eight GPUs of 80 GB with main memory", "[train][plan]") {
  const train::ModelSize model{.trained = 70 * kGb};
  const auto enough = train::plan(model, gpus(8, 2 * kTb, kMasterWeights));
  CHECK(recommended(enough) == "stage 3, optimizer offloaded");
  for (std::size_t i = 0; i <= 4; ++i) CHECK_FALSE(enough.strategies[i].fits);
  CHECK(enough.strategies[6].fits);
  CHECK_THAT(
      enough.advice,
      Contains("Use .zero = {.stage = 3, .offload_optimizer = true}, the fastest that fits"));
  CHECK_THAT(enough.advice, Contains("123.0 GB of the 250.0 GB of main memory"));

  const auto options = gpus(8, 512 * kGb, kMasterWeights);
  const auto too_little = train::plan(model, options);
  CHECK(recommended(too_little) == "nothing");
  const auto ranks = train::enough_ranks(too_little.model, too_little.options);
  REQUIRE(ranks);
  CHECK_THAT(too_little.advice, Contains("Nothing fits."));
  CHECK_THAT(too_little.advice,
             Contains("On " + std::to_string(ranks->ranks) + " ranks, 8 on each node"));
  CHECK(train::plan(model, gpus(ranks->ranks, 512 * kGb, kMasterWeights)).recommended);
  CHECK_FALSE(train::plan(model, gpus(ranks->ranks - 1, 512 * kGb, kMasterWeights)).recommended);
}

TEST_CASE("a plan with which nothing fits says what would help", "[train][plan]") {
  auto options = gpus(8, kTb, kMasterWeights);
  options.activations = 90 * kGb;
  CHECK_THAT(train::plan({.trained = kGb}, options).advice,
             Contains("activations alone take 90.0 GB of the 80.0 GB"));

  options.activations = 0;
  CHECK_THAT(train::plan({.trained = 40 * kGb, .largest = 30 * kGb}, options).advice,
             Contains("the buckets of the largest parameter take"));
  CHECK_THAT(train::plan({.trained = 1'000'000 * kGb}, options).advice,
             Contains("More ranks do not help: nothing fits on up to 65,536 of them"));

  const auto narrow = train::plan({.trained = 10 * kGb}, gpus(1, kTb, {}));
  CHECK(recommended(narrow) == "nothing");
  CHECK_THAT(narrow.advice, Contains(".master_weights = true}, .zero = {.stage = 1, "
                                     ".offload_optimizer = true} would fit on the ranks"));
}

TEST_CASE("a plan says where the making of a model needs too much", "[train][plan]") {
  const train::ModelSize model{.trained = 13 * kGb};
  const auto plan = train::plan(model, gpus(8, 512 * kGb, kMasterWeights));
  CHECK(plan.making == 78 * kGb);
  CHECK(plan.recommended);
  CHECK_THAT(plan.advice,
             Contains("each rank takes 78.0 GB of main memory, and its share is 64.0"));
  CHECK_THAT(train::plan(model, gpus(8, kTb, kMasterWeights)).advice, !Contains("is made"));
  CHECK(train::plan(model, gpus(8, kTb, {})).making == 52 * kGb);
}

TEST_CASE("a model's size counts each tensor once", "[train][plan]") {
  const TiedNet net(torch::kCPU);
  REQUIRE(net.named_parameters().size() == 4);
  const auto size = train::size_of(net);
  CHECK(size.trained == 220);
  CHECK(size.largest == 200);
  CHECK(size.other_bytes == 4 * 105 + 48);
  const auto plan = train::plan(net, small_options({}));
  CHECK(plan.model.trained == 220);
  CHECK(plan.recommended == 0u);

  const auto without_memory = train::size_of(TiedNet(torch::kMeta));
  CHECK(without_memory.trained == 220);
  CHECK(without_memory.largest == 200);
  CHECK(without_memory.other_bytes == size.other_bytes);

  torch::nn::Linear wide(10, 20);
  wide->to(torch::kFloat64);
  CHECK(train::size_of(*wide).trained == 440);
}

TEST_CASE("a plan takes what it is not told from this machine", "[train][plan]") {
  using Device = train::PlanOptions::Device;
  const auto plan =
      train::plan(kSmallModel, {.ranks = 4, .ranks_per_node = 9, .device = Device::Cpu});
  CHECK(plan.options.ranks_per_node == 4);
  CHECK(plan.options.main_memory > kGb / 10);
  CHECK(plan.options.device_memory == plan.options.main_memory / 4);
  CHECK(plan.options.activations == plan.options.device_memory / 10);
  CHECK(plan.strategies.size() == 4);
  CHECK_THAT(plan.text(), Contains("of main memory, of which") && !Contains("GPU"));

  const auto elsewhere = train::plan(kSmallModel, {.ranks = 4, .device_memory = 80 * kGb});
  CHECK(elsewhere.options.device == Device::Gpu);
  CHECK(elsewhere.options.main_memory == plan.options.main_memory);
}

TEST_CASE("the text of a plan has each strategy, in GB", "[train][plan]") {
  const auto plan = train::plan({.trained = 13 * kGb}, gpus(8, kTb, {}));
  const auto text = plan.text();
  for (const auto& strategy : plan.strategies) {
    CHECK_THAT(text, Contains("\n" + train::name_of(strategy.zero) + "  "));
    CHECK_THAT(text, Contains("  " + train::in_gb(strategy.device.total()) + "  "));
  }
  CHECK_THAT(text, Contains("GB of each rank") && Contains(plan.advice));
  CHECK(train::in_gb(0) == "0");
  CHECK(train::in_gb(1) == "<0.01");
  CHECK(train::in_gb(1'880'000'000) == "1.88");
  CHECK(train::in_gb(9'999'000'000) == "10.0");
  CHECK(train::in_gb(1'234'567 * kGb) == "1,234,567");
}

TEST_CASE("numbers that cannot be are refused by name", "[train][plan]") {
  using train::plan;
  const auto with = [](auto set) {
    auto options = small_options({});
    set(options);
    return options;
  };
  CHECK_THROWS_WITH(plan(kSmallModel, with([](auto& o) { o.ranks = 0; })),
                    Contains("PlanOptions::ranks is 0"));
  CHECK_THROWS_WITH(plan(kSmallModel, with([](auto& o) { o.ranks = -3; })), Contains("is -3"));
  CHECK_THROWS_WITH(plan(kSmallModel, with([](auto& o) { o.ranks_per_node = -1; })),
                    Contains("ranks_per_node is -1"));
  CHECK_THROWS_WITH(plan(kSmallModel, with([](auto& o) { o.optimizer_bytes = 65; })),
                    Contains("optimizer_bytes is 65"));
  CHECK_THROWS_WITH(plan(kSmallModel, with([](auto& o) { o.activations = UINT64_MAX; })),
                    Contains("PlanOptions::activations"));
  CHECK_THROWS_WITH(
      plan(kSmallModel, with([](auto& o) { o.mixed_precision.master_weights = true; })),
      Contains("its type is Float32"));
  CHECK_THROWS_WITH(plan({.trained = 0}, small_options({})), Contains("no trained parameter"));
  CHECK_THROWS_WITH(plan({.trained = 5, .largest = 6}, small_options({})),
                    Contains("ModelSize::largest is 6"));
  CHECK_THROWS_WITH(plan({.trained = UINT64_MAX}, small_options({})),
                    Contains("ModelSize::trained"));
}

TEST_CASE("sums for models of a quadrillion parameters are right", "[train][plan]") {
  constexpr std::uint64_t kTrained = 1'000'000'000'000'000;
  const auto plan = train::plan({.trained = kTrained}, gpus(1'000'000, kTb, kMasterWeights));
  CHECK(kept(plan.strategies[0].device) == 16 * kTrained);
  CHECK(kept(plan.strategies[3].device) == 16 * kGb);
  CHECK(kept(plan.strategies[6].main) == 16 * kGb);
  CHECK(plan.making == 6 * kTrained);

  auto most = small_options({});
  most.optimizer_bytes = 64;
  const auto ten = train::plan({.trained = 10 * kTrained, .largest = 10 * kTrained}, most);
  for (const auto& strategy : ten.strategies) {
    CHECK(strategy.device.total() < (1ull << 61));
    CHECK(strategy.device.total() >= strategy.device.passing);
  }
}
