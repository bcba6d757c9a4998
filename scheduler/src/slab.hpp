#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace troupe::scheduler {

/// Memory for objects of one type, which come and go. What was given back last is taken first: it is still in the cache.
/// But for the first block, which is small, it lies in huge pages where the system has any: of a million objects nearly
/// each access otherwise waits for the page tables too. What of a block was never taken is address space and no memory.
/// All of it goes back to the system with the slab.
template <class Object>
class Slab {
 public:
  Slab() = default;
  Slab(const Slab&) = delete;

  /// Uninitialized. Throws std::bad_alloc.
  void* take() {
    if (free_ != nullptr) return std::exchange(free_, free_->next);
    if (left_ == 0) grow();
    --left_;
    return std::exchange(fresh_, fresh_ + sizeof(Object));
  }
  void give(void* place) { free_ = new (place) Free{free_}; }

 private:
  static constexpr std::size_t kFirst = std::size_t{64} * 1024;
  static constexpr std::size_t kHugePage = std::size_t{2} * 1024 * 1024;
  static constexpr std::size_t kBlock = 8 * kHugePage;

  struct Free {
    Free* next;
  };
  static_assert(sizeof(Object) >= sizeof(Free) && sizeof(Object) <= kFirst);
  struct Release {
    void operator()(std::byte* block) const { std::free(block); }
  };

  void grow() {
    const bool huge = !blocks_.empty();
    const auto bytes = huge ? kBlock : kFirst;
    auto* memory = std::aligned_alloc(huge ? kHugePage : kFirst, bytes);
    auto& block = blocks_.emplace_back(static_cast<std::byte*>(memory));
    if (block == nullptr) throw std::bad_alloc{};
    if (huge) ::madvise(block.get(), bytes, MADV_HUGEPAGE);  // advice: without it all works, slower
    fresh_ = block.get();
    left_ = bytes / sizeof(Object);
  }

  std::vector<std::unique_ptr<std::byte, Release>> blocks_;
  Free* free_ = nullptr;
  std::byte* fresh_ = nullptr;  // in the last block, never taken so far
  std::size_t left_ = 0;        // objects there
};

}  // namespace troupe::scheduler
