#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "node/spawn/free_chunks.hpp"

using namespace troupe;

namespace {

constexpr std::size_t kChunks = 20'000, kLargest = 1024;
constexpr std::size_t kAllocated = 100;

std::size_t size_of(std::size_t index) { return 16 + index * 40 % kLargest; }

/// Every second one of many chunks is given back.
std::vector<char*> make_holes() {
  std::vector<char*> chunks;
  for (std::size_t i = 0; i < kChunks; ++i)
    chunks.push_back(static_cast<char*>(std::malloc(size_of(i))));
  for (std::size_t i = 0; i < kChunks; i += 2) std::free(std::exchange(chunks[i], nullptr));
  return chunks;
}

/// Of what malloc gives out now: whether it lies within twice its size.
bool lies_together() {
  std::vector<std::uintptr_t> places(kAllocated);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kAllocated; ++i) {
    places[i] = reinterpret_cast<std::uintptr_t>(std::malloc(size_of(i)));
    bytes += size_of(i);
  }
  const auto [first, last] = std::ranges::minmax(places);
  return last - first <= 2 * bytes;
}

int in_a_copy(int (*run)()) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(run());
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int kTogether = 1, kScattered = 2, kOther = 3;

}  // namespace

TEST_CASE("what is allocated after the free chunks were taken lies together", "[node][zygote]") {
  const auto with_chunks_taken = in_a_copy([] {
    make_holes();
    if (!node::take_free_chunks()) return kOther;
    return lies_together() ? kTogether : kScattered;
  });
  if (with_chunks_taken == kOther) {
    std::cout << "skipped: malloc is not that of glibc 2.33 or newer\n";
    return;
  }
  CHECK(with_chunks_taken == kTogether);
  CHECK(in_a_copy([] {
          make_holes();
          return lies_together() ? kTogether : kScattered;
        }) == kScattered);
}
