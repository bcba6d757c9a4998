#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/data_parallel.hpp>

namespace troupe::train {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Which bucket each parameter's gradient goes to, in the order in which backward is expected to
/// come to them: the reverse of `parameters`. A bucket ends where the next parameter would make it
/// too large, or is of another type. Pure, so that ranks can compare it.
std::vector<std::size_t> assign_buckets(const std::vector<NamedTensor>& parameters,
                                        const DataParallelOptions& options);

/// The parameters of each bucket, in the order of assign_buckets().
std::vector<std::vector<NamedTensor>> in_buckets(std::vector<NamedTensor> parameters,
                                                 const DataParallelOptions& options);

/// The numbers of the parameters of each bucket, for gradients that come in this order, which names
/// each parameter once.
std::vector<std::vector<std::size_t>> members_of_buckets(const std::vector<std::int64_t>& order,
                                                         const std::vector<at::Tensor>& parameters,
                                                         const DataParallelOptions& options);

}  // namespace troupe::train
