#include "normalization/batch_statistics.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include <ATen/AccumulateType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm_update_stats.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <troupe/train/layers/sync_batch_norm.hpp>

#include "zero/layout.hpp"

namespace troupe::train {
namespace {

/// [count, mean of each channel, sum of squared deviations of each channel].
at::Tensor packed_moments(const at::Tensor& input, bool counts) {
  const auto channels = input.size(1);
  auto packed = at::zeros({1 + 2 * channels}, input.options().dtype(at::kDouble));
  if (!counts || input.numel() == 0) return packed;
  const auto count = input.numel() / channels;
  // On a CPU the operator's results have the type of its input.
  const auto type = at::toAccumulateType(input.scalar_type(), /*is_cuda=*/true);
  const auto values = input.is_cpu() ? input.to(type) : input;
  const auto [mean, variance] = at::batch_norm_update_stats(values, {}, {}, /*momentum=*/0);
  packed[0].fill_(count);
  packed.narrow(0, 1, channels).copy_(mean);
  packed.narrow(0, 1 + channels, channels).copy_(variance).mul_(count);
  return packed;
}

/// `packed`: a row for each rank. The sums are those of Chan, Golub and LeVeque, "Updating formulae
/// and a pairwise algorithm for computing sample variances" (Stanford, 1979), of all ranks at once.
BatchMoments combined(const at::Tensor& packed) {
  const auto channels = (packed.size(1) - 1) / 2;
  const auto counts = packed.narrow(1, 0, 1);
  const auto means = packed.narrow(1, 1, channels);
  const auto squares = packed.narrow(1, 1 + channels, channels);
  const auto count = counts.sum().item<double>();
  const auto mean = (counts * means).sum(0).div_(count);
  auto variance = (squares + counts * (means - mean).square()).sum(0).div_(count);
  return {.mean = mean, .variance = variance, .count = static_cast<std::int64_t>(count)};
}

}  // namespace

BatchStatistics::BatchStatistics(Communicator& communicator, c10::Device device,
                                 std::shared_ptr<const BatchShare> share)
    : communicator_(communicator), device_(device), share_(std::move(share)) {}

BatchMoments BatchStatistics::moments(const at::Tensor& input) const {
  const auto own = packed_moments(input, counts());
  auto all = at::empty({communicator_.size(), own.numel()}, own.options());
  finish_writes(own);
  communicator_.all_gather(own.const_data_ptr(), all.data_ptr(),
                           static_cast<std::size_t>(own.numel()), DataType::Float64);
  return combined(all);
}

void BatchStatistics::add(const at::Tensor& sums) const {
  finish_writes(sums);
  communicator_.all_reduce(sums.data_ptr(), static_cast<std::size_t>(sums.numel()),
                           DataType::Float64, ReduceOp::Sum);
}

bool has_sync_batch_norm(const torch::nn::Module& model) {
  return std::ranges::any_of(model.modules(), [](const auto& each) {
    return each->template as<SyncBatchNormImpl>() != nullptr;
  });
}

void share_statistics(torch::nn::Module& model,
                      const std::shared_ptr<const BatchStatistics>& statistics) {
  for (const auto& each : model.modules()) {
    if (auto* layer = each->as<SyncBatchNormImpl>()) layer->statistics_ = statistics;
  }
}

}  // namespace troupe::train
