// What a long run takes: of the disk for its journal, and of its driver's memory for each trial.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include <malloc.h>
#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/temporary_folder.hpp"

namespace bounded_test {

using namespace troupe;

namespace {

struct Config {
  double x = 0;
  int steps = 1;
};

/// What the trials of one run see from inside.
struct Seen {
  std::atomic<std::uintmax_t> largest_journal{0};
  std::atomic<std::size_t> memory_before{0}, memory_after{0};
};
Seen seen;

constexpr int kBefore = 1000, kAfter = 3000;

void reports(tune::Context& ctx, const Config& config) {
  const auto journal = ctx.storage().parent_path().parent_path() / "journal.jsonl";
  for (int t = 1; t <= config.steps; ++t) {
    ctx.report({{"score", config.x * t}});
    std::error_code none;
    const auto size = std::filesystem::file_size(journal, none);
    if (!none) seen.largest_journal = std::max(seen.largest_journal.load(), size);
  }
}

std::size_t memory_in_use() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

void measures(tune::Context& ctx, const Config& config) {
  ctx.report({{"score", config.x}});
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which have an allocator of their own
  const auto trial = ctx.storage().filename();
  if (trial == std::to_string(kBefore)) seen.memory_before = memory_in_use();
  if (trial == std::to_string(kAfter)) seen.memory_after = memory_in_use();
#endif
}

template <auto Function>
auto run(const tune::TemporaryFolder& folder, std::size_t trials, int steps, std::size_t snapshot) {
  return tune::run<Function>({.space = {{"x", tune::uniform(0, 1)}},
                              .trials = trials,
                              .metric = "score",
                              .storage = folder.path(),
                              .snapshot_after = snapshot,
                              .config = {.steps = steps},
                              .show = tune::Show::None,
                              .in_process = true});
}

}  // namespace

TEST_CASE("a journal stays as small as the snapshots keep it, however long the run",
          "[tune][journal]") {
  const tune::TemporaryFolder whole, with_snapshots;
  const auto journal = run<reports>(whole, 20, 1000, 0).folder() / "journal.jsonl";
  const auto size = std::filesystem::file_size(journal);
  seen.largest_journal = 0;
  run<reports>(with_snapshots, 20, 1000, size / 20);
  CHECK(seen.largest_journal > 0);
  // What is judged at one look is written at once, and is counted after that.
  CHECK(seen.largest_journal < size / 4);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a trial that has ended costs its driver a few kilobytes", "[tune]") {
  const tune::TemporaryFolder folder;
  run<measures>(folder, kAfter + 10, 1, std::size_t{16} << 20);
  REQUIRE(seen.memory_before > 0);
  REQUIRE(seen.memory_after > 0);
  const auto grown =
      static_cast<double>(seen.memory_after) - static_cast<double>(seen.memory_before);
  const double each = grown / (kAfter - kBefore);
  CAPTURE(each);
  CHECK(each > 0);
  CHECK(each < 4096);
}
#endif

}  // namespace bounded_test
