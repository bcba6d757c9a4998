#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/train/communicator.hpp>

#include "parallel/batch_share.hpp"

namespace torch::nn {
class Module;
}

namespace troupe::train {

/// Of the values that each channel has on all ranks. Tensors of float64, one element a channel.
struct BatchMoments {
  at::Tensor mean;
  at::Tensor variance;     ///< divided by `count`
  std::int64_t count = 0;  ///< of one channel
};

/// What the layers SyncBatchNorm of a context tell the other ranks. Its functions are collectives,
/// and const, as they change nothing here. Lives in one rank's process; used by the thread of the
/// context, and by that of its backward.
class BatchStatistics {
 public:
  /// `communicator`: over memory of `device`. Nobody else uses it, as other threads reduce
  /// gradients meanwhile. `share`: of the batch that is in forward.
  BatchStatistics(Communicator& communicator, c10::Device device,
                  std::shared_ptr<const BatchShare> share);

  c10::Device device() const { return device_; }
  /// Whether this rank's current batch counts.
  bool counts() const { return share_->counts; }

  /// Of the ranks whose batches count. `input`: of at least two dimensions, the second one of which
  /// is that of channels, and which is as long on all ranks. The same on all ranks, bit for bit.
  BatchMoments moments(const at::Tensor& input) const;
  /// `sums`: of float64, without gaps. In place: the sums over all ranks.
  void add(const at::Tensor& sums) const;
  /// Ends the calls of all ranks, those to come too: this rank takes part in none any more.
  void abort(std::string_view reason) const { communicator_.abort(reason); }

 private:
  Communicator& communicator_;
  const c10::Device device_;
  const std::shared_ptr<const BatchShare> share_;
};

/// Whether the model has a layer SyncBatchNorm.
bool has_sync_batch_norm(const torch::nn::Module& model);
/// Connects the model's layers SyncBatchNorm, which hold `statistics` weakly. nullptr: each
/// normalizes its rank's batches alone.
void share_statistics(torch::nn::Module& model,
                      const std::shared_ptr<const BatchStatistics>& statistics);

}  // namespace troupe::train
