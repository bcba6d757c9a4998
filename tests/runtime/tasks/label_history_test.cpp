#include "calls/output/label_history.hpp"
#include "guard.hpp"
#include "rounds.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

using troupe::runtime::LabelHistory;

namespace {

using Spans = std::vector<LabelHistory::Span>;

/// Zeros that a forked process shares.
class Shared {
 public:
  Shared()
      : memory_(::mmap(nullptr, LabelHistory::bytes(), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~Shared() { ::munmap(memory_, LabelHistory::bytes()); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_;
};

/// As a reader names the byte at `position`; "": under no label.
std::string label_at(const LabelHistory& history, std::uint64_t position) {
  std::string label;
  for (const auto& span : history.since(position)) {
    if (span.begin <= position) label = span.label;
  }
  return label;
}

}  // namespace

TEST_CASE("labels during which nothing was printed leave nothing behind",
          "[runtime][tasks][record]") {
  const Shared memory;
  LabelHistory history(memory.get());
  CHECK(history.since(0).empty());
  std::uint64_t position = 0;
  for (int i = 0; i < 3 * static_cast<int>(LabelHistory::kChanges); ++i) {
    history.change("speaks", position);
    position += 10;
    history.change("silent", position);
    if (i % 3 == 0) history.change("silent too", position);
  }
  history.change("speaks", position);
  CHECK(history.since(0) == Spans{{0, "speaks"}});
}

TEST_CASE("a label is cut, and one that is not known any more is empty",
          "[runtime][tasks][record]") {
  const Shared memory;
  LabelHistory history(memory.get());
  history.change(std::string(200, 'x'), 0);
  CHECK(history.since(0) == Spans{{0, std::string(LabelHistory::kMostLabelBytes, 'x')}});
  for (std::size_t i = 1; i <= LabelHistory::kLabels; ++i) history.change(std::to_string(i), i);
  CHECK(history.since(0).front() == LabelHistory::Span{0, ""});
  CHECK(label_at(history, LabelHistory::kLabels) == std::to_string(LabelHistory::kLabels));
}

TEST_CASE("each byte is found under what ran as it was printed, or under nothing",
          "[runtime][tasks][record]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const Shared memory;
  LabelHistory history(memory.get());
  std::vector<std::string> printed;  // by position
  for (int i = 0; i < 20'000; ++i) {
    const auto label = std::to_string(random() % (i % 2000 < 1000 ? 3 : 100));
    history.change(label, printed.size());
    if (random() % 2 == 0) printed.insert(printed.end(), random() % 3, label);
    if (i % 1000 != 999) continue;
    for (std::size_t at = 0; at < printed.size(); at += 1 + random() % 40) {
      const auto found = label_at(history, at);
      if (at + 200 > printed.size() && i % 2000 < 1000) REQUIRE(found == printed[at]);
      if (!found.empty()) REQUIRE(found == printed[at]);
    }
  }
}

TEST_CASE("a reader finds what it has read under its own label while the writer goes on",
          "[runtime][tasks][record]") {
  const std::uint64_t labels = GENERATE(50, 100);  // fewer than it keeps, and more
  const Shared memory;
  const Shared count;  // of bytes that were printed; byte i under label i % labels
  auto& printed = *static_cast<std::atomic<std::uint64_t>*>(count.get());
  const auto writer = ::fork();
  if (writer == 0) {
    LabelHistory history(memory.get());
    for (std::uint64_t i = 0;; ++i) {
      history.change("silent", i);
      history.change(std::to_string(i % labels), i);
      printed.store(i + 1, std::memory_order_release);
    }
  }
  const LabelHistory history(memory.get());
  std::size_t wrong = 0, named = 0;
  const auto deadline = std::chrono::steady_clock::now() + troupe::test::kGuard;
  while (named < 20'000 && std::chrono::steady_clock::now() < deadline) {
    const auto end = printed.load(std::memory_order_acquire);
    const auto from = end - std::min<std::uint64_t>(end, 1000);
    const auto spans = history.since(from);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto next = i + 1 < spans.size() ? spans[i + 1].begin : end;
      for (auto byte = spans[i].begin; byte < std::min(next, end); ++byte) {
        if (spans[i].label.empty()) continue;
        ++named;
        wrong += spans[i].label != std::to_string(byte % labels) ? 1 : 0;
      }
    }
  }
  ::kill(writer, SIGKILL);
  REQUIRE(::waitpid(writer, nullptr, 0) == writer);
  CHECK(wrong == 0);
  CHECK(named > 0);
}
