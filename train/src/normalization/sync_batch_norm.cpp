#include <troupe/train/layers/sync_batch_norm.hpp>

#include <ostream>
#include <stdexcept>
#include <string>

#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "normalization/batch_statistics.hpp"
#include "normalization/normalized.hpp"
#include "precision/master_weights.hpp"

namespace troupe::train {
namespace {

std::string shape_of(const at::Tensor& input) {
  return fmt::format("({})", fmt::join(input.sizes(), ", "));
}

}  // namespace

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  const auto statistics = is_training() ? statistics_.lock() : nullptr;
  if (!statistics) return BatchNormImplBase::forward(input);
  _check_input_dim(input);
  check_alike(input, statistics->device());
  BatchMoments moments;
  {
    const at::NoGradGuard no_grad;
    moments = statistics->moments(input);
    if (moments.count < 2) {
      throw std::invalid_argument(fmt::format(
          "SyncBatchNorm: expected more than 1 value per channel on all ranks together when "
          "training, got {} (input of shape {} on this rank): give the ranks more rows, or call "
          "eval() to normalize with the running statistics",
          moments.count, shape_of(input)));
    }
    track(moments);
  }
  return normalized(input, weight, bias, moments, options.eps(), statistics);
}

/// Before any rank waits for this one.
void SyncBatchNormImpl::check_alike(const at::Tensor& input, c10::Device device) const {
  if (input.size(1) != options.num_features()) {
    throw std::invalid_argument(fmt::format(
        "SyncBatchNorm: expected input with {} channels, its num_features, got {} (input of shape "
        "{}, whose second dimension is that of channels)",
        options.num_features(), input.size(1), shape_of(input)));
  }
  if (input.device() != device) {
    throw std::invalid_argument(
        fmt::format("SyncBatchNorm: expected input on {}, where the ranks train, got one on {}: "
                    "move it with to(ctx.device())",
                    device.str(), input.device().str()));
  }
  const auto type = input.scalar_type();
  const bool fits = !weight.defined() || weight.scalar_type() == type ||
                    (is_small(input) && weight.scalar_type() == at::kFloat);
  if (!input.is_floating_point() || !fits) {
    throw std::invalid_argument(fmt::format(
        "SyncBatchNorm: expected input of the type of the weight ({}), or of bfloat16 "
        "or float16 where the weight is of Float, got {}",
        weight.defined() ? c10::toString(weight.scalar_type()) : "none", c10::toString(type)));
  }
}

void SyncBatchNormImpl::track(const BatchMoments& moments) {
  if (!num_batches_tracked.defined()) return;
  num_batches_tracked += 1;
  const auto momentum =
      options.momentum() ? *options.momentum() : 1 / num_batches_tracked.item<double>();
  const auto count = static_cast<double>(moments.count);
  running_mean.mul_(1 - momentum).add_(moments.mean.to(running_mean.scalar_type()), momentum);
  running_var.mul_(1 - momentum)
      .add_(moments.variance.to(running_var.scalar_type()), momentum * count / (count - 1));
}

void SyncBatchNormImpl::_check_input_dim(const at::Tensor& input) {
  if (input.dim() < 2) {
    throw std::invalid_argument(
        fmt::format("SyncBatchNorm: expected at least 2D input, (N, C) or (N, C, ...), got {}D "
                    "input of shape {}",
                    input.dim(), shape_of(input)));
  }
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  const auto momentum = options.momentum();
  stream << fmt::format(
      "troupe::train::SyncBatchNorm({}, eps={}, momentum={}, affine={}, track_running_stats={})",
      options.num_features(), options.eps(), momentum ? fmt::to_string(*momentum) : "None",
      options.affine(), options.track_running_stats());
}

}  // namespace troupe::train
