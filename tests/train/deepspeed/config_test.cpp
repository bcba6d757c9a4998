// Reading a configuration of DeepSpeed: what its keys mean, and which of them are refused.
#include <troupe/train/deepspeed.hpp>

#include <fstream>
#include <string>
#include <vector>

#include <troupe/detail/codec.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace troupe::train;
using Catch::Contains;
using deepspeed::Config;
using deepspeed::OptimizerOptions;
using Type = MixedPrecision::Type;

namespace {

std::string refusal_of(const std::string& json) {
  try {
    deepspeed::parse(json, "ds.json");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::string error_of_sizes(const Config& config, int ranks) {
  try {
    (void)config.batch_sizes(ranks);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<std::int64_t> sizes_of(const std::string& json, int ranks) {
  const auto sizes = deepspeed::parse(json).batch_sizes(ranks);
  return {sizes.train, sizes.micro, sizes.accumulation};
}

}  // namespace

TEST_CASE("a configuration as people have it is read whole", "[train][deepspeed]") {
  const auto config = deepspeed::parse(R"({
    "train_batch_size": 64,
    "train_micro_batch_size_per_gpu": 8,
    "steps_per_print": 2000,
    "wall_clock_breakdown": false,
    "gradient_clipping": 0.5,
    "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 3e-5, "warmup_num_steps": 500}},
    "fp16": {"enabled": false, "loss_scale": 0},
    "bf16": {"enabled": true},
    "zero_optimization": {
      "stage": 2, "overlap_comm": true, "contiguous_gradients": true, "reduce_bucket_size": 5e8,
      "allgather_bucket_size": "auto", "offload_optimizer": {"device": "none"}, "zero_quantized_weights": false},
    "flops_profiler": {"enabled": true},
    "tensorboard": {"enabled": false, "output_path": "logs"},
    "amp": null
  })");
  CHECK(config.train_batch_size == 64);
  CHECK(config.train_micro_batch_size_per_gpu == 8);
  CHECK(!config.gradient_accumulation_steps);
  CHECK(config.gradient_clipping == 0.5);
  REQUIRE(config.optimizer);
  CHECK(config.optimizer->type == OptimizerOptions::Type::AdamW);
  CHECK(config.optimizer->lr == 3e-5);
  CHECK(config.optimizer->betas == std::array{0.8, 0.95});
  CHECK(config.optimizer->eps == 1e-6);
  CHECK(config.optimizer->weight_decay == 0.1);
  REQUIRE(config.scheduler);
  CHECK(std::get<WarmupLR>(*config.scheduler).warmup_num_steps == 500);
  CHECK(config.without_effect ==
        std::vector<std::string>{
            "flops_profiler", "steps_per_print", "wall_clock_breakdown",
            "zero_optimization.allgather_bucket_size", "zero_optimization.contiguous_gradients",
            "zero_optimization.overlap_comm", "zero_optimization.reduce_bucket_size"});
  const auto options = config.context({.threads = 3});
  CHECK(options.threads == 3);
  CHECK(options.zero.stage == 2);
  CHECK(options.mixed_precision.type == Type::BFloat16);
  CHECK(options.mixed_precision.master_weights);
  CHECK(!options.data_parallel.find_unused_parameters);
}

TEST_CASE("what a configuration does not say is as in DeepSpeed", "[train][deepspeed]") {
  const auto config = deepspeed::parse("{}");
  CHECK(config.gradient_clipping == 1);
  CHECK(config.zero_optimization.stage == 0);
  CHECK(config.mixed_precision.type == Type::Float32);
  CHECK(!config.optimizer);
  CHECK(!config.scheduler);
  CHECK(config.without_effect.empty());

  const auto optimizer = [](const std::string& text) {
    return *deepspeed::parse(R"({"optimizer": )" + text + "}").optimizer;
  };
  // Its Adam decays weights as AdamW does.
  CHECK(optimizer(R"({"type": "Adam"})").type == OptimizerOptions::Type::AdamW);
  CHECK(optimizer(R"({"type": "Adam"})").lr == 0.001);
  CHECK(optimizer(R"({"type": "Adam"})").weight_decay == 0);
  CHECK(optimizer(R"({"type": "Adam", "params": {"torch_adam": true}})").weight_decay == 0.01);
  CHECK(optimizer(R"({"type": "adam", "params": {"adam_w_mode": false}})").type ==
        OptimizerOptions::Type::Adam);
  CHECK(optimizer(R"({"type": "Adam", "params": {"adam_w_mode": false, "torch_adam": true}})")
            .weight_decay == 0);
  const auto sgd = optimizer(R"({"type": "SGD", "params": {"momentum": 0.9, "nesterov": true}})");
  CHECK(sgd.type == OptimizerOptions::Type::SGD);
  CHECK(sgd.momentum == 0.9);
  CHECK(sgd.nesterov);
}

TEST_CASE("the precision is that of the block that is enabled", "[train][deepspeed]") {
  const auto precision = [](const std::string& text) {
    return deepspeed::parse(text).mixed_precision;
  };
  const auto half = precision(R"({"fp16": {"enabled": true, "initial_scale_power": 10,
      "loss_scale_window": 200, "hysteresis": 3, "consecutive_hysteresis": true, "min_loss_scale": 4}})");
  CHECK(half.type == Type::Float16);
  CHECK(half.master_weights);
  CHECK(half.loss_scale.initial == 1024);
  CHECK(half.loss_scale.window == 200);
  CHECK(half.loss_scale.hysteresis == 3);
  CHECK(half.loss_scale.consecutive_hysteresis);
  CHECK(half.loss_scale.smallest == 4);
  CHECK(half.loss_scale.fixed == 0);
  CHECK(precision(R"({"fp16": {"enabled": true, "loss_scale": 128}})").loss_scale.fixed == 128);
  CHECK(precision(R"({"fp16": {"enabled": true, "auto_cast": true}})").type == Type::Float16);
  CHECK(precision(R"({"bfloat16": {"enabled": true}})").type == Type::BFloat16);
  const auto cast = precision(R"({"torch_autocast": {"enabled": true, "dtype": "float16"}})");
  CHECK(cast.type == Type::Float16);
  CHECK(!cast.master_weights);
  CHECK(precision(R"({"torch_autocast": {"enabled": true, "dtype": "fp16"},
                      "fp16": {"initial_scale_power": 4}})")
            .loss_scale.initial == 16);
  CHECK(precision(R"({"torch_autocast": {"enabled": true}})").type == Type::BFloat16);
  CHECK(refusal_of(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})") ==
        "ds.json: 'bf16' is enabled, and 'fp16' too: enable one");
  CHECK_THAT(refusal_of(R"({"fp16": {"enabled": true, "min_loss_scale": -1}})"),
             Contains("ds.json: 'fp16' has a loss scale that cannot be: "));
}

TEST_CASE("two of three batch sizes give the third one", "[train][deepspeed]") {
  using Sizes = std::vector<std::int64_t>;
  constexpr auto kMicro = R"("train_micro_batch_size_per_gpu": )";
  constexpr auto kSteps = R"("gradient_accumulation_steps": )";
  const auto object = [](const std::string& text) { return "{" + text + "}"; };
  const std::string train = R"("train_batch_size": 48)";
  CHECK(sizes_of(object(train + "," + kMicro + "4," + kSteps + "3"), 4) == Sizes{48, 4, 3});
  CHECK(sizes_of(object(train + "," + kMicro + "4"), 4) == Sizes{48, 4, 3});
  CHECK(sizes_of(object(train + "," + kSteps + "2"), 4) == Sizes{48, 6, 2});
  CHECK(sizes_of(object(std::string(kMicro) + "4," + kSteps + "2"), 4) == Sizes{32, 4, 2});
  CHECK(sizes_of(object(train), 4) == Sizes{48, 12, 1});
  CHECK(sizes_of(object(std::string(kMicro) + "4"), 4) == Sizes{16, 4, 1});

  CHECK_THAT(error_of_sizes(Config{}, 4), Contains("has neither train_batch_size nor"));
  CHECK_THAT(error_of_sizes(Config{.gradient_accumulation_steps = 2}, 4),
             Contains("has neither train_batch_size nor"));
  CHECK(
      error_of_sizes(Config{.train_batch_size = 48,
                            .train_micro_batch_size_per_gpu = 4,
                            .gradient_accumulation_steps = 2},
                     4) ==
      "train_batch_size (48) is not train_micro_batch_size_per_gpu (4) x "
      "gradient_accumulation_steps (2) x 4 ranks: give two of the three, so that the third one is "
      "a whole number");
  CHECK_THAT(error_of_sizes(Config{.train_batch_size = 50, .train_micro_batch_size_per_gpu = 4}, 4),
             Contains("train_batch_size (50) is not train_micro_batch_size_per_gpu (4) x "
                      "gradient_accumulation_steps (not given) x 4 ranks"));
  CHECK_THAT(error_of_sizes(Config{.train_batch_size = 3}, 4), Contains("(3) is not "));
  CHECK_THAT(error_of_sizes(Config{.train_batch_size = 3, .train_micro_batch_size_per_gpu = 4}, 1),
             Contains("x 1 rank: "));
  // Their product is beyond what can be counted.
  constexpr std::int64_t kMany = std::int64_t{1} << 53;
  CHECK_THAT(
      error_of_sizes(
          Config{.train_micro_batch_size_per_gpu = kMany, .gradient_accumulation_steps = kMany}, 4),
      Contains("train_batch_size (not given) is not"));
}

TEST_CASE("what cannot be meant is refused with its key", "[train][deepspeed]") {
  CHECK(refusal_of(R"({"train_bach_size": 8})") ==
        "ds.json: 'train_bach_size' is no key of DeepSpeed 0.19 that Troupe knows; did you mean "
        "'train_batch_size'?");
  CHECK_THAT(refusal_of(R"({"zero_optimization": {"stag": 1}})"),
             Contains("'zero_optimization.stag' is no key") && Contains("did you mean 'stage'?"));
  CHECK_THAT(refusal_of(R"({"optimizer": {"type": "Adam", "params": {"learning_rate": 1}}})"),
             Contains("'optimizer.params.learning_rate' is no key"));
  CHECK(refusal_of(R"({"train_batch_size": 8, "train_batch_size": 16})") ==
        "ds.json: the key 'train_batch_size' stands twice in one object; keep one");
  CHECK_THAT(refusal_of("{\n  \"train_batch_size\": 8,\n}"),
             Contains("ds.json: this is no JSON: ") && Contains("line 3"));
  CHECK_THAT(refusal_of(""), Contains("ds.json: this is no JSON: "));
  CHECK_THAT(refusal_of(R"({"gradient_clipping": 1e999})"), Contains("ds.json: this is no JSON: "));
  CHECK_THAT(refusal_of(std::string("{}\0x", 4)), Contains("it has a NUL byte"));
  CHECK_THAT(refusal_of("{\"" + std::string(3'000'000, 'x') + "\": 1}"), Contains("is no key"));
  CHECK_THAT(refusal_of(R"({"optimizer": {"tpye": "Adam"}})"), Contains("did you mean 'type'?"));
  CHECK(refusal_of("[1]") == "ds.json: expected an object, {...}");
  CHECK(refusal_of(R"({"train_batch_size": 0})") ==
        "ds.json: 'train_batch_size' is 0: expected 1 or more");
  CHECK(refusal_of(R"({"train_batch_size": 2.5})") ==
        "ds.json: 'train_batch_size' is 2.5: expected an integer of at most 2^53");
  CHECK(refusal_of(R"({"train_batch_size": "32"})") ==
        "ds.json: 'train_batch_size' is \"32\": expected a number");
  CHECK_THAT(
      refusal_of(R"({"train_batch_size": "auto"})"),
      Contains("'train_batch_size' is \"auto\", which the Trainer of Hugging Face replaces"));
  CHECK(refusal_of(R"({"zero_optimization": {"stage": 4}})") ==
        "ds.json: 'zero_optimization.stage' is 4: expected 0 to 3");
  CHECK(refusal_of(R"({"zero_optimization": true})") ==
        "ds.json: 'zero_optimization' is true: expected an object, {...}");
  CHECK(refusal_of(R"({"gradient_clipping": -1})") ==
        "ds.json: 'gradient_clipping' is -1: expected 0 or more");
  CHECK(refusal_of(R"({"fp16": {"enabled": 1}})") ==
        "ds.json: 'fp16.enabled' is 1: expected true or false");
}

TEST_CASE("optimizers and schedules that cannot be are refused with their key",
          "[train][deepspeed]") {
  CHECK(refusal_of(R"({"optimizer": {}})") == "ds.json: 'optimizer.type' has to be given");
  CHECK(refusal_of(R"({"optimizer": {"type": "Lamb"}})") ==
        "ds.json: 'optimizer.type' is \"Lamb\": expected one of Adam, AdamW, SGD");
  CHECK(refusal_of(R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9]}}})") ==
        "ds.json: 'optimizer.params.betas' has to be two numbers, each 0 or more and less than 1");
  CHECK_THAT(refusal_of(R"({"optimizer": {"type": "Adam", "params": {"max_grad_norm": 1}}})"),
             Contains("write gradient_clipping"));
  CHECK_THAT(refusal_of(R"({"optimizer": {"type": "SGD", "params": {"nesterov": true}}})"),
             Contains("it needs a momentum above 0"));
  CHECK(refusal_of(R"({"scheduler": {"type": "WarmupLr"}})") ==
        "ds.json: 'scheduler.type' is \"WarmupLr\": expected one of WarmupLR, WarmupDecayLR, "
        "WarmupCosineLR, OneCycle, LRRangeTest; did you mean 'WarmupLR'?");
  CHECK(refusal_of(R"({"scheduler": {"type": "WarmupDecayLR"}})") ==
        "ds.json: 'scheduler.params' cannot be: total_num_steps is 0: expected 1 or more");
  CHECK(refusal_of(R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1}}})") ==
        "ds.json: 'scheduler.params.cycle_max_lr' has to be given");
  CHECK_THAT(
      refusal_of(R"({"scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": 4}}})"),
      Contains("has to be -1"));
  CHECK(refusal_of(R"({"fp16": {"enabled": true, "initial_scale_power": 127}})") ==
        "ds.json: 'fp16.initial_scale_power' is 127: expected 0 to 126");
  CHECK(refusal_of(R"({"train_batch_size": 1e300})") ==
        "ds.json: 'train_batch_size' is 1e+300: expected an integer of at most 2^53");
  CHECK_THAT(refusal_of(R"({"bf16": {"enabled": true, "check_grad_overflow": true}})"),
             Contains("it leaves no step in bfloat16 out"));
  CHECK_THAT(
      refusal_of(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}}})"),
      Contains("is \"cubic\": expected \"log\" or \"linear\""));
}

TEST_CASE("a feature of DeepSpeed that Troupe lacks is refused only where it is enabled",
          "[train][deepspeed]") {
  for (
      const std::string on :
      {R"("zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/tmp"}})",
       R"("zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.3}})",
       R"("zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "super_offload": true}})",
       R"("zero_optimization": {"zero_quantized_gradients": true})",
       R"("zero_optimization": {"zero_hpz_partition_size": 8})",
       R"("zero_optimization": {"mics_shard_size": 4})",
       R"("zero_optimization": {"mics_hierarchical_params_gather": true})",
       R"("zero_optimization": {"zeropp_loco_param": {"err_beta": 0.8, "reset_T": 1024}})",
       R"("torch_autocast": {"enabled": true, "dtype": "float32"})",
       R"("sparse_gradients": true)",
       R"("communication_data_type": "fp16")",
       R"("gradient_allreduce_op": "sum")",
       R"("amp": {"enabled": true})",
       R"("wandb": {"enabled": true, "team": "a"})",
       R"("curriculum_learning": {"enabled": true})",
       R"("elasticity": {"enabled": true})",
       R"("bf16": {"enabled": true, "bf16_optimizer_states": true})",
       R"("managed_gradient_accumulation": false)",
       R"("optimizer": {"type": "Adam", "params": {"amsgrad": true}})",
       R"("optimizer": {"type": "Adam", "params": {"bias_correction": false}})",
       R"("tensor_parallel": {"autotp_size": 2})"}) {
    INFO(on);
    CHECK_THAT(refusal_of("{" + on + "}"), Contains("ds.json: '"));
  }
  CHECK(refusal_of(R"({"zero_optimization": {"zero_quantized_weights": true}})") ==
        "ds.json: 'zero_optimization.zero_quantized_weights' is true, and Troupe does "
        "not have this: leave it away, or switch it off");
  for (
      const std::string off :
      {R"("zero_optimization": {"offload_param": {"device": "none", "pin_memory": true}})",
       R"("zero_optimization": {"zero_hpz_partition_size": 1, "mics_shard_size": -1})",
       R"("zero_optimization": {"mics_hierarchical_params_gather": false, "zeropp_loco_param": null})",
       R"("zero_optimization": {"zeropp_loco_param": {}})",
       R"("torch_autocast": {"enabled": false, "dtype": "float32"})",
       R"("elasticity": {"enabled": false, "max_train_batch_size": 2000})",
       R"("zero_optimization": {"offload_optimizer": {"pin_memory": true}, "cpu_offload_param": false})",
       R"("wandb": {"project": "x"}, "tensorboard": {"output_path": "logs"}, "amp": false)",
       R"("activation_checkpointing": {"partition_activations": true})",
       R"("scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": -1}})",
       R"("fp16": {"enabled": false, "min_loss_scale": 0, "loss_scale_window": 0})",
       R"("fp16": {"enabled": true, "loss_scale": 128, "loss_scale_window": 0})",
       R"("torch_autocast": {"enabled": true, "dtype": "torch.float16"} /* said so */)",
       R"("gradient_allreduce_op": "MEAN", "bf16": {"enabled": true, "check_grad_overflow": false})",
       R"("gradient_predivide_factor": 2, "prescale_gradients": true)", R"("sparse_attention": {})",
       R"("optimizer": {"type": "AdamW", "params": {"amsgrad": false, "fused": true}})"}) {
    INFO(off);
    CHECK(refusal_of("{" + off + "}") == "accepted");
  }
}

TEST_CASE("a configuration offloads to main memory", "[train][deepspeed]") {
  const auto zero_of = [](const std::string& zero) {
    return deepspeed::parse("{\"zero_optimization\": " + zero + "}").zero_optimization;
  };
  const auto both =
      zero_of(R"({"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true,
      "ratio": 1.0}, "offload_param": {"device": "cpu", "buffer_count": 5}})");
  CHECK((both.stage == 3 && both.offload_optimizer && both.offload_parameters));
  const auto older = zero_of(R"({"stage": 2, "cpu_offload": true})");
  CHECK((older.offload_optimizer && !older.offload_parameters));
  CHECK(!zero_of(R"({"stage": 2, "offload_optimizer": {"device": "none"}})").offload_optimizer);
  const auto error_with = [](const std::string& zero) {
    return refusal_of("{\"zero_optimization\": " + zero + "}");
  };
  CHECK(
      error_with(R"({"offload_optimizer": {"device": "cpu"}})") ==
      "ds.json: 'zero_optimization.offload_optimizer' is on, and the stage is 0: expected a stage "
      "of 1, 2 or 3");
  CHECK_THAT(error_with(R"({"stage": 3, "offload_param": {"device": "cpu"}})"),
             Contains("'zero_optimization.offload_param' is on: expected it with stage 3, and"));
  CHECK_THAT(
      error_with(R"({"stage": 3, "offload_optimizer": {"device": "nvme"}})"),
      Contains("'zero_optimization.offload_optimizer.device' is \"nvme\": Troupe offloads to"));
  CHECK_THAT(error_with(R"({"stage": 3, "offload_optimizer": {"device": "gpu"}})"),
             Contains("is \"gpu\": expected \"cpu\" or \"none\""));
  CHECK_THAT(error_with(R"({"stage": 3, "offload_optimizer": {"devise": "cpu"}})"),
             Contains("'zero_optimization.offload_optimizer.devise'"));
}

TEST_CASE("a configuration is read from a file, and travels", "[train][deepspeed]") {
  const troupe::testing::Scratch scratch;
  const auto file = scratch.path() / "zero.json";
  std::ofstream(file) << R"({"train_batch_size": 8, "zero_optimization": {"stage": 3},
      "optimizer": {"type": "SGD"}, "scheduler": {"type": "LRRangeTest"}, "dump_state": true})";
  const auto config = deepspeed::read(file);
  const auto back = troupe::detail::decode<Config>(troupe::detail::encode(config));
  CHECK(back.train_batch_size == 8);
  CHECK(back.zero_optimization.stage == 3);
  CHECK(back.optimizer->type == OptimizerOptions::Type::SGD);
  CHECK(std::holds_alternative<LRRangeTest>(*back.scheduler));
  CHECK(back.without_effect == std::vector<std::string>{"dump_state"});

  std::ofstream(file) << R"({"train_batch_size": -8})";
  CHECK_THROWS_WITH(deepspeed::read(file),
                    "zero.json: 'train_batch_size' is -8: expected 1 or more");
  CHECK_THROWS_WITH(
      deepspeed::read(scratch.path() / "none.json"),
      Contains(
          "none.json cannot be read (No such file or directory): give the path of a JSON file"));
  CHECK_THROWS_WITH(deepspeed::read(scratch.path()), Contains("cannot be read (Is a directory)"));
  std::ofstream(file).flush();
  CHECK_THROWS_WITH(deepspeed::read(file), Contains("zero.json: this is no JSON: "));
}
