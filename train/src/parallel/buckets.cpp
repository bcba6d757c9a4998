#include "parallel/buckets.hpp"

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
    const bool fits = !first && filled + bytes <= limit &&
                      at->tensor.options().type_equal(std::prev(at)->tensor.options());
    if (!fits) filled = 0;
    buckets.push_back(first ? 0 : buckets.back() + (fits ? 0 : 1));
    filled += bytes;
  }
  return buckets;
}

}  // namespace troupe::train
