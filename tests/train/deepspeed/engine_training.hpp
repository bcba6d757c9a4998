#pragma once

#include <fmt/format.h>
#include <troupe/train/deepspeed.hpp>

#include "support/precision_training.hpp"
#include "support/small_training.hpp"

/// Configurations that the engines of the tests are made with.
namespace engine_training {

using namespace precision_training;
using deepspeed::Config;
using deepspeed::Engine;
using deepspeed::initialize;

inline constexpr int kAccumulated = 3;    // micro-batches of an update
inline constexpr double kMaxNorm = 0.05;  // less than the gradients have
inline constexpr double kRate = 0.02;     // of learning, at the end of the rise
inline constexpr int kRise = 4;           // updates

inline Config config_of(int stage, int ranks) {
  return deepspeed::parse(fmt::format(
      R"({{"train_micro_batch_size_per_gpu": {}, "gradient_accumulation_steps": {},
           "gradient_clipping": {}, "zero_optimization": {{"stage": {}}},
           "optimizer": {{"type": "AdamW", "params": {{"lr": {}, "weight_decay": 0.1}}}},
           "scheduler": {{"type": "WarmupLR",
                         "params": {{"warmup_num_steps": {}, "warmup_type": "linear"}}}}}})",
      kRows / ranks, kAccumulated, kMaxNorm, stage, kRate, kRise));
}

inline const MixedPrecision kFloat16{
    .type = Type::Float16, .loss_scale = {.initial = 64}, .master_weights = true};

inline ContextOptions options_for(const Config& config) { return config.context(small_buckets()); }

}  // namespace engine_training
