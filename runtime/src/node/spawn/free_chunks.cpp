#include "node/spawn/free_chunks.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <malloc.h>
#include <unistd.h>

namespace troupe::node {

#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 33)  // has mallinfo2
#define TROUPE_HAS_MALLINFO2
#endif
#endif

#if defined(TROUPE_HAS_MALLINFO2)
namespace {

constexpr std::size_t kLargest = std::size_t{32} << 10, kStep = 16;
constexpr std::size_t kSmall = 1024;  // up to which glibc has a list for each step
/// What glibc keeps for the thread, which it does not count as free.
constexpr std::size_t kMostCached = std::size_t{256} << 10;
/// That a child may allocate before its heap grows.
constexpr std::size_t kRoom = std::size_t{64} << 10;
/// Of a program that has freed more, the pages may not be there any more: to take them would bring
/// them back.
constexpr std::size_t kMostFree = std::size_t{64} << 20;
constexpr int kMostTaken = 100'000;  // some milliseconds

/// In each chunk that was taken: a checker for leaks finds them all.
struct Taken {
  Taken* next = nullptr;
};
Taken* taken = nullptr;

/// Another allocator's chunks do not appear in glibc's account.
bool is_glibcs_malloc() {
  const auto in_use = ::mallinfo2().uordblks;
  void* const volatile probe = std::malloc(kLargest);
  const bool has_grown = ::mallinfo2().uordblks >= in_use + kLargest;
  std::free(probe);
  return has_grown;
}

}  // namespace

/// The large ones first, since from those the small ones are cut. The first of each size that lies
/// in memory which was not in use stays taken, too: given back it would be the next that malloc
/// gives out.
bool take_free_chunks() {
  if (!is_glibcs_malloc()) return false;
  const auto info = ::mallinfo2();
  if (info.fordblks - info.keepcost > kMostFree) return true;
  const auto unused = reinterpret_cast<std::uintptr_t>(::sbrk(0)) - info.keepcost;
  auto bytes_left = info.fordblks + kMostCached;
  int left = kMostTaken;
  for (auto size = kLargest; size >= kStep; size = size > kSmall ? size / 2 : size - kStep) {
    for (bool is_new = false; !is_new && left > 0 && bytes_left >= size; --left) {
      void* const memory = std::malloc(size);
      if (memory == nullptr) return true;
      bytes_left -= size;
      taken = new (memory) Taken{taken};
      is_new = reinterpret_cast<std::uintptr_t>(memory) >= unused;
    }
  }
  void* volatile room = std::malloc(kRoom);  // to grow it writes to one more page of libc
  std::free(room);
  return true;
}
#else
bool take_free_chunks() { return false; }
#endif

}  // namespace troupe::node
