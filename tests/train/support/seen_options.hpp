#pragma once

#include <span>
#include <vector>

#include <ATen/Parallel.h>
#include <troupe/train.hpp>

/// Which options the ranks' contexts were made with, as a run reports them.
namespace troupe::testing {

struct NoConfig {
  int index = 0;
};

/// Differs where one field does.
inline double sum_of(const train::LossScaleOptions& options) {
  return options.initial + 0.5 * static_cast<double>(options.window) + 0.25 * options.hysteresis +
         (options.consecutive_hysteresis ? 0.03125 : 0) + 3 * options.smallest + 7 * options.fixed;
}

inline std::vector<double> numbers_of(const train::ContextOptions& options) {
  return {static_cast<double>(options.backend),
          static_cast<double>(options.timeout.count()),
          static_cast<double>(options.warn_after.count()),
          static_cast<double>(options.data_parallel.first_bucket_bytes),
          static_cast<double>(options.data_parallel.bucket_bytes),
          options.data_parallel.find_unused_parameters ? 1.0 : 0.0,
          static_cast<double>(options.threads),
          static_cast<double>(options.zero.stage),
          static_cast<double>(options.mixed_precision.type),
          sum_of(options.mixed_precision.loss_scale),
          options.mixed_precision.master_weights ? 1.0 : 0.0,
          static_cast<double>(options.scale_learning_rates),
          options.data_parallel.broadcast_buffers ? 1.0 : 0.0,
          static_cast<double>(options.data_parallel.compression),
          options.zero.prefetch ? 1.0 : 0.0};
}

/// Options of which no field has its default.
inline train::ContextOptions unusual_options() {
  return {.backend = train::ContextOptions::Backend::Host,
          .timeout = std::chrono::milliseconds(43'210),
          .warn_after = std::chrono::milliseconds(21'098),
          .data_parallel = {.first_bucket_bytes = 4096,
                            .bucket_bytes = 65'536,
                            .find_unused_parameters = true,
                            .broadcast_buffers = false,
                            .compression = train::GradientCompression::BFloat16},
          .zero = {.stage = 1, .prefetch = false},
          .mixed_precision = {.type = train::MixedPrecision::Type::Float16,
                              .loss_scale = {.initial = 256,
                                             .window = 12,
                                             .hysteresis = 3,
                                             .consecutive_hysteresis = true,
                                             .smallest = 2,
                                             .fixed = 64},
                              .master_weights = true},
          .scale_learning_rates = train::LearningRateScaling::SquareRoot,
          .threads = 3};
}

/// Adds each option, the greatest over the ranks, and whether any rank has others.
inline Metrics seen_options(train::Context& context) {
  auto least = numbers_of(context.options());
  least.push_back(at::get_num_threads());
  auto greatest = least;
  context.communicator().all_reduce(std::span(least), train::ReduceOp::Min);
  context.communicator().all_reduce(std::span(greatest), train::ReduceOp::Max);
  return {{"backend", greatest[0]},
          {"timeout", greatest[1]},
          {"warn_after", greatest[2]},
          {"first_bucket", greatest[3]},
          {"bucket", greatest[4]},
          {"find_unused", greatest[5]},
          {"threads", greatest[6]},
          {"stage", greatest[7]},
          {"precision", greatest[8]},
          {"loss scale", greatest[9]},
          {"master weights", greatest[10]},
          {"learning rates", greatest[11]},
          {"broadcast buffers", greatest[12]},
          {"compression", greatest[13]},
          {"prefetch", greatest[14]},
          {"threads of LibTorch", greatest[15]},
          {"ranks", context.world_size()},
          {"differ", least != greatest}};
}

/// What seen_options() reports where all ranks have these, and one CPU each.
inline std::vector<double> expected_options(const train::ContextOptions& options, int ranks) {
  auto numbers = numbers_of(options);
  numbers.push_back(options.threads < 0 ? 1 : options.threads);
  numbers.push_back(ranks);
  numbers.push_back(0);
  return numbers;
}

inline std::vector<double> values_of(const Metrics& metrics) {
  std::vector<double> values;
  for (const auto& metric : metrics) values.push_back(metric.value);
  return values;
}

}  // namespace troupe::testing
