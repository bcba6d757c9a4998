#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

/// A collective over main memory: what every rank says, in the order of the ranks. Values travel as
/// their bytes, so that one has no gaps, and no pointers, in it.
template <class Value>
std::vector<Value> gather_all(Communicator& communicator, const Value& own) {
  static_assert(std::has_unique_object_representations_v<Value> && !std::is_pointer_v<Value>);
  std::vector<Value> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&own, all.data(), sizeof own, DataType::UInt8);
  return all;
}

}  // namespace troupe::train
