#include "os/huge_pages.hpp"

#include <cstdint>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <catch2/catch.hpp>

using namespace troupe;

namespace {

// Small enough for malloc to have them from brk.
constexpr std::size_t kBlockBytes = 1000, kBlocks = 16'000;

/// Whether the kernel makes huge pages when asked to, tried without the code that is tested.
bool kernel_gathers() {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, 2 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* aligned = memory + (kHuge - reinterpret_cast<std::uintptr_t>(memory) % kHuge) % kHuge;
  *aligned = 1;
  const bool done = ::madvise(aligned, kHuge, 25 /* MADV_COLLAPSE */) == 0;
  ::munmap(memory, 2 * kHuge);
  return done;
}

/// KiB of the heap with this word in smaps.
long heap_kib(const std::string& word) {
  std::ifstream smaps("/proc/self/smaps");
  bool in_heap = false;
  long sum = 0;
  for (std::string line; std::getline(smaps, line);) {
    const auto first = line.substr(0, line.find(' '));
    if (first.find('-') != std::string::npos) in_heap = line.ends_with("[heap]");
    if (in_heap && first == word) sum += std::stol(line.substr(first.size()));
  }
  return sum;
}

}  // namespace

TEST_CASE("a large heap lies in huge pages after it was gathered, with what was in it",
          "[node][zygote]") {
  std::vector<std::vector<unsigned char>> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i)
    blocks.emplace_back(kBlockBytes, static_cast<unsigned char>(i));
  os::gather_huge_pages();
  for (std::size_t i = 0; i < kBlocks; ++i) {
    REQUIRE(std::accumulate(blocks[i].begin(), blocks[i].end(), 0UL) == kBlockBytes * (i % 256));
  }
  constexpr auto kFilledKib = static_cast<long>(kBlockBytes * kBlocks / 1024);
  if (!kernel_gathers() || heap_kib("Rss:") < kFilledKib) {
    std::cout
        << "skipped: this kernel, or the malloc of this preset, has no huge pages for the heap\n";
    return;
  }
  CHECK(heap_kib("AnonHugePages:") >= kFilledKib / 2);
}
