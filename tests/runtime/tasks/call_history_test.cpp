#include "calls/timeline/call_history.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "../../support/id_literals.hpp"

using namespace troupe::runtime;
using Kind = CallHistory::Kind;

namespace {

/// Zeros that a forked process shares.
class HistoryMemory {
 public:
  HistoryMemory()
      : memory_(::mmap(nullptr, CallHistory::bytes(), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~HistoryMemory() { ::munmap(memory_, CallHistory::bytes()); }
  HistoryMemory(const HistoryMemory&) = delete;
  HistoryMemory& operator=(const HistoryMemory&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_;
};

/// Functions, as an executor has them: an identity and a name.
const std::string* function(std::size_t which) {
  static const auto names = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 1000; ++i) made.push_back("function " + std::to_string(i));
    return made;
  }();
  return &names.at(which);
}

void begin_call(CallHistory& history, std::size_t which, std::uint64_t now,
                const CallHistory::Caller& caller = {}) {
  history.begin(Kind::Task, function(which), *function(which), caller, now);
}

}  // namespace

TEST_CASE("only the call that is under way is read, with the wait within it",
          "[runtime][tasks][timeline]") {
  const HistoryMemory memory;
  CallHistory history(memory.get());
  CHECK(history.read_running().spans.empty());
  begin_call(history, 1, 10);
  history.end(20, false);
  CHECK(history.read_running().spans.empty());
  begin_call(history, 2, 30);
  REQUIRE(history.read_running().spans.size() == 1);
  CHECK(history.read_running().spans[0].name == "function 2");
  CHECK(history.read_running().spans[0].begin == 30);
  // More than there is room for: the call is kept, at whatever place.
  for (std::uint64_t i = 0; i < 2 * CallHistory::kSpans; ++i) {
    history.begin_wait(40 + 4 * i);
    history.end_wait(42 + 4 * i);
  }
  REQUIRE(history.read_running().spans.size() == 1);
  CHECK(history.read_running().spans[0].begin == 30);
  history.begin_wait(1'000'000);
  const auto waiting = history.read_running().spans;
  REQUIRE(waiting.size() == 2);
  CHECK(waiting[0].name == "function 2");
  CHECK(waiting[1].kind == Kind::Wait);
  CHECK(waiting[1].begin == 1'000'000);
  history.end(1'000'010, true);
  CHECK(history.read_running().spans.empty());
}

TEST_CASE("a call is read as it was noted, with who called and when",
          "[runtime][tasks][timeline]") {
  const HistoryMemory memory;
  CallHistory history(memory.get());
  CHECK(history.empty());
  history.set_role("rank 2 Trainer");
  begin_call(history, 1, 100, {.process = 7_process, .waited = 30});
  history.end(200, true);
  history.begin(Kind::Method, function(2), *function(2),
                {.process = 8_process, .waited = 5, .by_clock = true}, 300);
  const auto content = CallHistory(memory.get()).read();
  CHECK(!history.empty());
  CHECK(content.role == "rank 2 Trainer");
  CHECK(content.overwritten == 0);
  REQUIRE(content.spans.size() == 2);
  const auto& first = content.spans[0];
  CHECK(first.begin == 100);
  CHECK(first.end == 200);
  CHECK(first.waited == 30);
  CHECK(first.caller == 7_process);
  CHECK(first.kind == Kind::Task);
  CHECK(first.failed);
  CHECK(!first.by_clock);
  CHECK(first.name == "function 1");
  const auto& second = content.spans[1];
  CHECK(second.end == 0);
  CHECK(second.kind == Kind::Method);
  CHECK(second.by_clock);
  CHECK(!second.failed);
}

TEST_CASE("the last spans are kept, and how many came before", "[runtime][tasks][timeline]") {
  const HistoryMemory memory;
  CallHistory history(memory.get());
  constexpr std::uint64_t kAll = 3 * CallHistory::kSpans + 5;
  for (std::uint64_t i = 1; i <= kAll; ++i) {
    begin_call(history, 0, 10 * i);
    history.end(10 * i + 4, false);
  }
  const auto content = history.read();
  REQUIRE(content.spans.size() == CallHistory::kSpans - 1);
  CHECK(content.overwritten + content.spans.size() == kAll);
  CHECK(content.spans.back().begin == 10 * kAll);
  CHECK(content.spans.front().begin == 10 * (kAll - CallHistory::kSpans + 2));
}

TEST_CASE("a call that waits more often than there is room for is still there",
          "[runtime][tasks][timeline]") {
  const HistoryMemory memory;
  CallHistory history(memory.get());
  begin_call(history, 3, 2, {.process = 7_process});
  std::uint64_t now = 10;
  for (std::size_t i = 0; i < 2 * CallHistory::kSpans; ++i) {
    history.begin_wait(now += 2);
    history.end_wait(now += 2);
  }
  const auto calls = [&] {
    auto spans = history.read().spans;
    std::erase_if(spans, [](const CallHistory::Span& span) { return span.kind == Kind::Wait; });
    return spans;
  };
  REQUIRE(calls().size() == 1);
  CHECK(calls()[0].begin == 2);
  CHECK(calls()[0].end == 0);
  history.end(now += 2, false);
  REQUIRE(calls().size() == 1);
  CHECK(calls()[0].end == now);
  CHECK(calls()[0].caller == 7_process);
}

TEST_CASE("a wait outside of a call is none, and one that did not end does with its call",
          "[runtime][tasks][timeline]") {
  const HistoryMemory memory;
  CallHistory history(memory.get());
  history.begin_wait(10);
  history.end_wait(20);
  CHECK(history.empty());
  begin_call(history, 0, 30);
  history.begin_wait(40);
  history.end(50, false);
  const auto spans = history.read().spans;
  REQUIRE(spans.size() == 2);
  CHECK(spans[1].kind == Kind::Wait);
  CHECK(spans[1].end == 50);
}

TEST_CASE("a name that was forgotten is none, and never another's", "[runtime][tasks][timeline]") {
  const HistoryMemory memory;
  CallHistory history(memory.get());
  for (std::size_t i = 0; i < 1000; ++i) {
    begin_call(history, i, i + 1);
    history.end(i + 2, false);
    if (i % 100 == 99) {  // one that comes again and again
      begin_call(history, 0, i + 1);
      history.end(i + 2, false);
    }
  }
  const auto spans = history.read().spans;
  REQUIRE(spans.size() == 1010);
  std::size_t known = 0;
  for (std::size_t i = 0, which = 0; i < spans.size(); ++i) {
    const bool again = (i + 1) % 101 == 0;
    const auto expected = *function(again ? 0 : which++);
    if (spans[i].name.empty()) continue;
    ++known;
    CHECK(spans[i].name == expected);
  }
  CHECK(known >= CallHistory::kNames - 1);
  CHECK(spans.back().name == "function 0");
}

TEST_CASE("no span is read half, while its writer goes on and after it was killed",
          "[runtime][tasks][timeline]") {
  const HistoryMemory memory;
  const auto child = ::fork();
  if (child == 0) {
    CallHistory history(memory.get());
    // Each word of a span says which one it is.
    for (std::uint64_t i = 1;; ++i) {
      history.begin(Kind::Task, function(i % 7), *function(i % 7),
                    {.process = ProcessId(i), .waited = i}, 16 * i);
      history.end(16 * i + 2, false);
    }
  }
  const CallHistory history(memory.get());
  std::size_t read = 0;
  const auto check = [&] {
    const auto content = history.read();
    auto last = content.overwritten;
    for (const auto& span : content.spans) {
      const auto i = ++last;
      const bool whole = span.begin == 16 * i && (span.end == 0 || span.end == 16 * i + 2) &&
                         span.waited == i && span.caller == ProcessId(i) &&
                         span.name == *function(i % 7);
      if (!whole) FAIL("span " << i << " begins at " << span.begin << " as " << span.name);
      ++read;
    }
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < until || read == 0) check();
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  check();
  CHECK(history.read().spans.size() >= CallHistory::kSpans - 1);
}
