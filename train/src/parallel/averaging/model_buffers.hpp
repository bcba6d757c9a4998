#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/train/communicator.hpp>

#include "parallel/buckets.hpp"

namespace troupe::train {

/// A model's buffers, such as running means, which the ranks have alike once the model is prepared,
/// and after each backward.
class ModelBuffers {
 public:
  /// `device`: that of the communicator's memory. Buffers without elements are left out.
  ModelBuffers(const std::vector<NamedTensor>& buffers, c10::Device device);

  /// Afterwards each rank has root's values. A collective, which sends all buffers at once.
  /// Autograd does not see the writes, so that a backward may follow whose forward has used the
  /// buffers.
  void broadcast(Communicator& communicator, int root) const;

 private:
  std::vector<at::Tensor> buffers_;
  at::Tensor bytes_;                // all buffers, packed, as they are sent
  std::vector<at::Tensor> places_;  // of each buffer, in its type and shape, in these bytes
};

}  // namespace troupe::train
