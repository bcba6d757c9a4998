#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace troupe::scheduler {

/// Memory for objects of one type, which come and go. What was given back last is taken first: it
/// is still in the cache. But for the first block, which is small, it lies in huge pages where the
/// system has any: of a million objects nearly each access otherwise waits for the page tables too.
/// What of a block was never taken is address space and no memory. All of it goes back to the
/// system with the slab.
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
    std::size_t bytes = 0;
    void operator()(std::byte* block) const { ::munmap(block, bytes); }
  };
  using Block = std::unique_ptr<std::byte, Release>;

  void grow() {
    const bool huge = !blocks_.empty();
    blocks_.push_back(huge ? huge_pages() : mapped(kFirst));
    fresh_ = blocks_.back().get();
    if (huge) fresh_ = aligned(fresh_);
    left_ = (huge ? kBlock : kFirst) / sizeof(Object);
  }
  /// Straight from the system: what an allocator has had before lies in small pages, and stays
  /// there.
  static Block mapped(std::size_t bytes) {
    auto* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc{};
    return Block(static_cast<std::byte*>(memory), Release{bytes});
  }
  static Block huge_pages() {
    auto block = mapped(kBlock + kHugePage);
    ::madvise(aligned(block.get()), kBlock, MADV_HUGEPAGE);  // advice: without it all works, slower
    return block;
  }
  static std::byte* aligned(std::byte* block) {
    const auto past = reinterpret_cast<std::uintptr_t>(block) % kHugePage;
    return past == 0 ? block : block + (kHugePage - past);
  }

  std::vector<Block> blocks_;
  Free* free_ = nullptr;
  std::byte* fresh_ = nullptr;  // in the last block, never taken so far
  std::size_t left_ = 0;        // objects there
};

}  // namespace troupe::scheduler
