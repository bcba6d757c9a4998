#pragma once

#include <iosfwd>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

namespace troupe::train {

class BatchStatistics;
struct BatchMoments;

/// Batch normalization (Ioffe and Szegedy, ICML 2015) with the mean and the variance of the batches
/// of all ranks, as torch.nn.SyncBatchNorm (Zhang et al., "Context Encoding for Semantic
/// Segmentation", CVPR 2018, section 3.3). It stands in a model where torch::nn::BatchNorm1d, 2d or
/// 3d would stand, with the same options, and the same names of parameters and buffers, so that
/// either loads what the other has saved.
///
/// Input: (N, C), (N, C, L), (N, C, H, W), (N, C, D, H, W) or more dimensions after C; C is
/// `num_features`. Output: the same size and type. The input may be of bfloat16 or float16 where
/// the parameters are of float32, as under Context::autocast(). Statistics are computed in float32,
/// or in float64 for an input of float64.
///
/// Context::prepare(), of a model that has the layer, connects it with those of the other ranks. In
/// training mode forward() is then a collective, and so is its backward():
///
/// 1. Each rank has the same statistics and running statistics, bit for bit. A rank's values count
///    as many as they are: the ranks' batches may have different numbers of rows, or none.
/// 2. Where the loss of each rank is a mean over its rows, and all ranks have as many, gradients,
///    which backward() averages over the ranks, are those of one process with all rows in one
///    batch. (The gradients of `weight` and `bias` are this rank's before that average.)
/// 3. All ranks call the same layers, equally often and in one order, in forward and in backward,
///    and with ZeroOptions::stage 3 also the layers between. Where an exception leaves backward()
///    on one rank, the other ranks get GangBroken; where it leaves forward(), once it has left the
///    rank's function too. No rank goes on in training mode then.
///
/// In eval mode, before prepare(), with one rank, and after the context has ended it does what
/// torch::nn::BatchNorm does, bit for bit. With several ranks forward() throws
/// std::invalid_argument for an input with other channels, type or device, before any rank waits;
/// and, on all ranks, where the inputs of all ranks together have fewer than two values in each
/// channel. Throws GangBroken and TimedOut as any collective. A backward of a backward is not
/// supported.
///
/// Cost: an all-gather of 2C + 1 numbers of float64 in forward, and an all-reduce of 2C in
/// backward, for which a GPU's stream is waited for. It keeps its input for backward().
class SyncBatchNormImpl : public torch::nn::BatchNormImplBase<2, SyncBatchNormImpl> {
 public:
  using torch::nn::BatchNormImplBase<2, SyncBatchNormImpl>::BatchNormImplBase;

  at::Tensor forward(const at::Tensor& input);
  /// "troupe::train::SyncBatchNorm(64, eps=1e-05, momentum=0.1, affine=true,
  /// track_running_stats=true)"
  void pretty_print(std::ostream& stream) const override;

 protected:
  void _check_input_dim(const at::Tensor& input) override;

 private:
  friend void share_statistics(torch::nn::Module& model,
                               const std::shared_ptr<const BatchStatistics>& statistics);
  void check_alike(const at::Tensor& input, c10::Device device) const;
  void track(const BatchMoments& moments);

  std::weak_ptr<const BatchStatistics> statistics_;  // of the context that has prepared the model
};

/// What models hold: `SyncBatchNorm norm{torch::nn::BatchNormOptions(64)};`
TORCH_MODULE(SyncBatchNorm);

}  // namespace troupe::train
