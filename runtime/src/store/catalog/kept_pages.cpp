#include "store/catalog/kept_pages.hpp"

#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "store/catalog/require.hpp"

namespace troupe::store {

bool KeptPages::has_room(ProcessId process, std::uint64_t bytes) const {
  const auto found = of_.find(process);
  const auto kept = found == of_.end() ? 0 : found->second.bytes;
  return bytes <= most_bytes_ && kept <= most_bytes_ - bytes;
}

void KeptPages::keep(ProcessId process, Taken pages) {
  assert(has_room(process, pages.extent.bytes));
  const auto extent = pages.extent;
  auto& kept = of_[process];
  [[maybe_unused]] const bool is_new = kept.at.emplace(extent.offset, std::move(pages)).second;
  assert(is_new);
  kept.bytes += extent.bytes;
  bytes_ += extent.bytes;
}

std::optional<KeptPages::Taken> KeptPages::take(ProcessId process, std::uint64_t offset,
                                                std::uint64_t bytes) {
  const auto found = of_.find(process);
  if (found == of_.end()) return std::nullopt;
  auto& kept = found->second;
  const auto at = kept.at.find(offset);
  if (at == kept.at.end() || at->second.extent.bytes < bytes) return std::nullopt;
  auto pages = std::move(at->second);
  kept.at.erase(at);
  kept.bytes -= pages.extent.bytes;
  bytes_ -= pages.extent.bytes;
  return pages;
}

std::vector<KeptPages::Taken> KeptPages::take_all(ProcessId process) {
  std::vector<Taken> all;
  const auto found = of_.find(process);
  if (found == of_.end()) return all;
  for (auto& [offset, pages] : found->second.at) all.push_back(std::move(pages));
  bytes_ -= found->second.bytes;
  of_.erase(found);
  return all;
}

bool KeptPages::has_any(ProcessId process) const {
  const auto found = of_.find(process);
  return found != of_.end() && !found->second.at.empty();
}

std::vector<Extent> KeptPages::of(ProcessId process) const {
  std::vector<Extent> extents;
  const auto found = of_.find(process);
  if (found == of_.end()) return extents;
  for (const auto& [offset, pages] : found->second.at) extents.push_back(pages.extent);
  return extents;
}

void KeptPages::check() const {
  std::uint64_t total = 0;
  for (const auto& [process, kept] : of_) {
    std::uint64_t sum = 0, end = 0;
    for (const auto& [offset, pages] : kept.at) {
      require(offset == pages.extent.offset && offset >= end,
              fmt::format("two extents that process {} keeps overlap at {}", process, offset));
      end = pages.extent.end();
      sum += pages.extent.bytes;
    }
    require(sum == kept.bytes && sum <= most_bytes_,
            fmt::format("process {} keeps {} bytes", process, sum));
    total += sum;
  }
  require(total == bytes_, fmt::format("{} bytes are kept, and counted as {}", total, bytes_));
}

}  // namespace troupe::store
