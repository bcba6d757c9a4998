#include "collective/host/memory/regions.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace troupe::train {

std::shared_ptr<void> Regions::allocate(Patience& patience, LocalGroup& group,
                                        const std::string& name, std::size_t bytes) {
  forget_unused();
  constexpr std::size_t kPage = 4096;
  const auto part_bytes = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  const auto number = made_++;
  auto memory = std::make_shared<SharedMemory>(patience, fmt::format("{}/region{}", name, number),
                                               part_bytes * static_cast<std::size_t>(group.size()),
                                               group.world_rank(0));
  group.wait_all(group.arrive());
  memory->close_descriptor();
  regions_.push_back({number, part_bytes, group.rank(), memory, memory->data()});
  return std::shared_ptr<void>(memory, regions_.back().part(group.rank()));
}

LocalGroup::Place Regions::find(const void* data, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(data);
  for (const auto& region : regions_) {
    const auto* part = region.part(region.own);
    if (!region.memory.expired() && std::less_equal<>()(part, first) &&
        std::less_equal<>()(first + bytes, part + region.part_bytes)) {
      return {region.number, static_cast<std::uint64_t>(first - part)};
    }
  }
  return {};
}

std::byte* Regions::at(LocalGroup::Place place, int local) const {
  const auto region = std::find_if(regions_.begin(), regions_.end(),
                                   [&](auto& r) { return r.number == place.region; });
  return region->part(local) + place.offset;
}

void Regions::forget_unused() {
  std::erase_if(regions_, [](const Region& region) { return region.memory.expired(); });
}

}  // namespace troupe::train
