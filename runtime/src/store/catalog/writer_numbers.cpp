#include "store/catalog/writer_numbers.hpp"

#include <algorithm>

#include "store/catalog/require.hpp"

namespace troupe::store {

void WriterNumbers::on_early_free(std::uint64_t number, std::size_t most) {
  if (may_come(number) && freed_early_.size() < most) freed_early_.insert(number);
}

bool WriterNumbers::on_create(std::uint64_t number) {
  last_ = std::max(last_, number);
  const bool was_freed = freed_early_.erase(number) > 0;
  freed_early_.erase(freed_early_.begin(), freed_early_.lower_bound(number));
  return was_freed;
}

void WriterNumbers::check() const {
  require(freed_early_.empty() || may_come(*freed_early_.begin()),
          "the free of an object is kept that cannot come");
}

}  // namespace troupe::store
