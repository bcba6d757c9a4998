#include "os/huge_pages.hpp"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace troupe::os {
namespace {

#if !defined(MADV_COLLAPSE)
constexpr int MADV_COLLAPSE = 25;  // newer than the headers of Debian 12's libc
#endif
constexpr std::uintptr_t kHugeBytes = std::uintptr_t{2} << 20;
constexpr std::uintptr_t kLargestMapping = std::uintptr_t{256} << 20;

struct Range {
  std::uintptr_t begin = 0, end = 0;
};

/// Its whole huge pages; the kernel may have it in several pieces.
std::vector<Range> heap() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with("[heap]")) continue;
    Range range;
    char dash = 0;
    std::istringstream(line) >> std::hex >> range.begin >> dash >> range.end;
    range.begin = (range.begin + kHugeBytes - 1) & ~(kHugeBytes - 1);
    range.end &= ~(kHugeBytes - 1);
    if (range.begin < range.end) ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

void gather_huge_pages() {
  for (const auto& [begin, end] : heap()) {
    if (end - begin <= kLargestMapping)
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_COLLAPSE);
  }
}

}  // namespace troupe::os
