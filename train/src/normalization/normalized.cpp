#include "normalization/normalized.hpp"

#include <array>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/AccumulateType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

namespace troupe::train {
namespace {

using torch::autograd::variable_list;

/// In which batch normalization computes.
at::ScalarType computing_type(const at::Tensor& input) {
  return at::toAccumulateType(input.scalar_type(), /*is_cuda=*/true);
}

at::Tensor as_type(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.defined() ? tensor.to(type) : tensor;
}

/// The backward pass of normalized(), with g the gradient of the output, x the normalized input,
/// and means over the values that a channel has on all ranks:
///
///     gradient of the input = weight / sqrt(variance + eps) * (g - mean(g) - x * mean(g * x))
///
/// All ranks take part in the means, also one whose batch is empty or does not count.
class NormalizedBackward final : public torch::autograd::Node {
 public:
  NormalizedBackward(const at::Tensor& input, const at::Tensor& weight, BatchMoments moments,
                     double eps, const std::shared_ptr<const BatchStatistics>& statistics)
      : input_(input, /*is_output=*/false),
        weight_(weight, /*is_output=*/false),
        moments_(std::move(moments)),
        inverse_deviation_((moments_.variance + eps).rsqrt()),
        eps_(eps),
        counts_(statistics->counts()),
        statistics_(statistics) {}

  variable_list apply(variable_list&& gradients) override;
  void release_variables() override {
    input_.reset_data();
    weight_.reset_data();
  }

 private:
  at::Tensor sums(const at::Tensor& gradient, const at::Tensor& input) const;
  at::Tensor gradient_of_input(const at::Tensor& gradient, const at::Tensor& input,
                               const at::Tensor& weight, const at::Tensor& means) const;

  torch::autograd::SavedVariable input_;
  torch::autograd::SavedVariable weight_;
  const BatchMoments moments_;
  const at::Tensor inverse_deviation_;
  const double eps_;
  const bool counts_;  // the batch, when it was in forward
  const std::weak_ptr<const BatchStatistics> statistics_;
};

variable_list NormalizedBackward::apply(variable_list&& gradients) {
  if (at::GradMode::is_enabled()) {
    throw std::logic_error(
        "SyncBatchNorm: backward() with create_graph is not supported, because the means over the "
        "ranks have no gradient: call it without, or use torch::nn::BatchNorm");
  }
  const auto statistics = statistics_.lock();
  if (!statistics) {
    throw std::logic_error(
        "SyncBatchNorm: the Context in which the forward pass was made has ended, and backward() "
        "needs the other ranks: call backward() while the Context lives");
  }
  const auto input = input_.unpack(), weight = weight_.unpack();
  const auto gradient = gradients.at(0).defined() ? gradients[0] : at::zeros_like(input);
  const auto own = sums(gradient, input);
  const auto means = own.clone();
  statistics->add(means);
  means.div_(moments_.count);
  variable_list results(3);
  if (task_should_compute_output(0)) results[0] = gradient_of_input(gradient, input, weight, means);
  if (task_should_compute_output(1)) results[1] = own[1].to(weight.scalar_type());
  if (task_should_compute_output(2)) results[2] = own[0];  // autograd gives it the type of the bias
  return results;
}

/// This rank's sums of g and of g * x, in float64.
at::Tensor NormalizedBackward::sums(const at::Tensor& gradient, const at::Tensor& input) const {
  auto sums = at::zeros({2, input.size(1)}, input.options().dtype(at::kDouble));
  if (!counts_ || input.numel() == 0) return sums;
  const auto type = computing_type(input);
  const auto mean = moments_.mean.to(type), variance = moments_.variance.to(type);
  // The backward pass of eval mode, for the parameters alone; CUDA's needs a weight.
  const auto [none, of_weight, of_bias] = at::native_batch_norm_backward(
      gradient, input, at::ones_like(mean), mean, variance, mean, inverse_deviation_.to(type),
      /*train=*/false, eps_, {false, true, true});
  sums[0].copy_(of_bias);
  sums[1].copy_(of_weight);
  return sums;
}

at::Tensor NormalizedBackward::gradient_of_input(const at::Tensor& gradient,
                                                 const at::Tensor& input, const at::Tensor& weight,
                                                 const at::Tensor& means) const {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  const auto type = computing_type(input);
  const auto of_channels = [&](const at::Tensor& values) { return values.to(type).view(shape); };
  auto scale = inverse_deviation_;
  if (weight.defined()) scale = scale * weight.to(at::kDouble);
  const auto deviation = input - of_channels(moments_.mean);
  const auto offset = of_channels((scale * means[0]).neg_());
  const auto slope = of_channels((scale * inverse_deviation_ * means[1]).neg_());
  return at::addcmul(offset, deviation, slope)
      .addcmul_(gradient, of_channels(scale))
      .to(input.scalar_type());
}

}  // namespace

at::Tensor normalized(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      const BatchMoments& moments, double eps,
                      const std::shared_ptr<const BatchStatistics>& statistics) {
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    const auto type = computing_type(input);
    output = at::batch_norm(input, as_type(weight, type), as_type(bias, type),
                            moments.mean.to(type), moments.variance.to(type), /*training=*/false,
                            /*momentum=*/0, eps, /*cudnn_enabled=*/false);
  }
  if (!torch::autograd::compute_requires_grad(input, weight, bias)) return output;
  const std::shared_ptr<NormalizedBackward> backward(
      new NormalizedBackward(input, weight, moments, eps, statistics), torch::autograd::deleteNode);
  backward->set_next_edges(torch::autograd::collect_next_edges(input, weight, bias));
  torch::autograd::set_history(output, backward);
  return output;
}

}  // namespace troupe::train
