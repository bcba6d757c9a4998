#include "parallel/buckets.hpp"

#include <utility>

namespace troupe::train {

std::vector<std::size_t> assign_buckets(const std::vector<NamedTensor>& parameters,
                                        const DataParallelOptions& options) {
  std::vector<std::size_t> buckets;
  std::size_t filled = 0;
  for (auto at = parameters.rbegin(); at != parameters.rend(); ++at) {
    const auto bytes = static_cast<std::size_t>(at->tensor.numel()) * at->tensor.element_size();
    const bool first = buckets.empty();
    const auto limit =
        !first && buckets.back() > 0 ? options.bucket_bytes : options.first_bucket_bytes;
    // Not by the device: parameters may still be on their way to one.
    const bool fits = !first && filled + bytes <= limit &&
                      at->tensor.scalar_type() == std::prev(at)->tensor.scalar_type() &&
                      at->tensor.layout() == std::prev(at)->tensor.layout();
    if (!fits) filled = 0;
    buckets.push_back(first ? 0 : buckets.back() + (fits ? 0 : 1));
    filled += bytes;
  }
  return buckets;
}

std::vector<std::vector<NamedTensor>> in_buckets(std::vector<NamedTensor> parameters,
                                                 const DataParallelOptions& options) {
  const auto assigned = assign_buckets(parameters, options);
  std::vector<std::vector<NamedTensor>> buckets(assigned.empty() ? 0 : assigned.back() + 1);
  for (std::size_t i = 0; i < assigned.size(); ++i)
    buckets[assigned[i]].push_back(std::move(parameters[parameters.size() - 1 - i]));
  return buckets;
}

std::vector<std::vector<std::size_t>> members_of_buckets(const std::vector<std::int64_t>& order,
                                                         const std::vector<at::Tensor>& parameters,
                                                         const DataParallelOptions& options) {
  std::vector<NamedTensor> reversed;
  for (auto index = order.rbegin(); index != order.rend(); ++index)
    reversed.push_back({"", parameters[static_cast<std::size_t>(*index)]});
  const auto assigned = assign_buckets(reversed, options);
  std::vector<std::vector<std::size_t>> members(assigned.empty() ? 0 : assigned.back() + 1);
  for (std::size_t i = 0; i < order.size(); ++i)
    members[assigned[i]].push_back(static_cast<std::size_t>(order[i]));
  return members;
}

}  // namespace troupe::train
