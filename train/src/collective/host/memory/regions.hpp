#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collective/host/memory/local_group.hpp"

namespace troupe::train {

/// Buffers that all ranks of a node share, so that a reduction needs no copy: one memfd per
/// allocation, with a part for each rank. Numbered alike on every rank, because allocation is
/// collective.
class Regions {
 public:
  /// A collective over the node's ranks. -> this rank's part, which lives until the last share of
  /// it is gone.
  std::shared_ptr<void> allocate(Patience& patience, LocalGroup& group, const std::string& name,
                                 std::size_t bytes);

  /// Which buffer of allocate() holds all of `data`, and where; region -1 if none does.
  LocalGroup::Place find(const void* data, std::size_t bytes) const;

  /// The same place in the part of another rank of the node.
  std::byte* at(LocalGroup::Place place, int local) const;

 private:
  struct Region {
    std::int32_t number;
    std::size_t part_bytes;
    int own;
    std::weak_ptr<SharedMemory> memory;  // of those who hold a part
    std::byte* data;
    std::byte* part(int local) const { return data + static_cast<std::size_t>(local) * part_bytes; }
  };
  void forget_unused();

  std::vector<Region> regions_;
  std::int32_t made_ = 0;
};

}  // namespace troupe::train
