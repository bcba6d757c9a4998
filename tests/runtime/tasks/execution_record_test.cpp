#include <csignal>
#include <cstdio>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "calls/execution_record.hpp"

using namespace troupe::runtime;

namespace {

ExecutionRecord made() {
  auto record = ExecutionRecord::create();
  REQUIRE(record);
  return std::move(*record);
}

std::optional<CallsSeen> of(const ExecutionRecord::Report& report, ProcessId caller) {
  for (const auto& entry : report.callers) {
    if (entry.process == caller) return entry.calls;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("what a process began and finished is read after it was killed in the middle",
          "[runtime][tasks][record]") {
  auto record = made();
  const auto child = ::fork();
  if (child == 0) {
    auto adopted = ExecutionRecord::adopt(record.descriptor());
    auto* mine = std::get_if<ExecutionRecord>(&adopted);
    if (!mine) _exit(1);
    for (std::uint64_t call = 1; call <= 5; ++call) {
      mine->mark(7_process, 10 * call).begin();
      mine->mark(7_process, 10 * call).finish();
    }
    mine->mark(8_process, 3).begin();
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto report = record.read();
  CHECK(report.complete);
  const auto first = of(report, 7_process);
  REQUIRE(first);
  CHECK(first->of(50) == Progress::Finished);
  CHECK(first->of(51) == Progress::NotBegun);
  const auto second = of(report, 8_process);
  REQUIRE(second);
  CHECK(second->of(3) == Progress::UnderWay);
  CHECK(second->of(4) == Progress::NotBegun);
  CHECK(!of(report, 9_process));
}

TEST_CASE("a page with more callers than it has room for says that it does not know them all",
          "[runtime][tasks][record]") {
  auto record = made();
  for (ProcessId caller = 1_process; caller <= ProcessId(ExecutionRecord::kCallers); ++caller) {
    record.mark(caller, 1).begin();
    record.mark(caller, 1).finish();
  }
  CHECK(record.read().complete);
  record.mark(1000_process, 4).begin();
  const auto report = record.read();
  CHECK(!report.complete);
  CHECK(report.callers.size() == ExecutionRecord::kCallers);
  const auto last = of(report, 1000_process);
  REQUIRE(last);
  CHECK(last->of(4) == Progress::UnderWay);
}

TEST_CASE("what is no page of a record is not adopted", "[runtime][tasks][record]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const troupe::os::UniqueFd reads(ends[0]);
  const troupe::os::UniqueFd writes(ends[1]);
  CHECK(std::holds_alternative<std::string>(ExecutionRecord::adopt(reads)));
}

TEST_CASE("what ran while which output was printed is read after the process was killed",
          "[runtime][tasks][record]") {
  auto record = made();
  std::FILE* const file = std::tmpfile();
  REQUIRE(file);
  const auto child = ::fork();
  if (child == 0) {
    auto adopted = ExecutionRecord::adopt(record.descriptor());
    auto* mine = std::get_if<ExecutionRecord>(&adopted);
    if (!mine) _exit(1);
    mine->set_label("without a file");
    mine->note_output(::fileno(file));
    mine->set_label("silent");
    mine->set_label("first");
    (void)!::write(::fileno(file), "four", 4);
    mine->set_label("second");
    std::fclose(file);  // as user code may do with its own
    mine->set_label("silent");
    mine->set_label("third");
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  std::fclose(file);
  CHECK(record.labels_since(0) == std::vector<LabelHistory::Span>{{0, "first"}, {4, "third"}});
  CHECK(record.labels_since(4) == std::vector<LabelHistory::Span>{{4, "third"}});
}

TEST_CASE("a record in which little is noted takes three pages of memory",
          "[runtime][tasks][record]") {
  auto record = made();
  std::FILE* const file = std::tmpfile();
  REQUIRE(file);
  record.note_output(::fileno(file));
  record.history().set_role("an actor");
  ReplyLog replies(record.reply_memory());
  for (std::uint64_t call = 1; call <= 20; ++call) {
    const auto* name = call % 2 == 0 ? "even" : "odd";
    record.set_label(name);
    record.mark(7_process, call).begin();
    record.history().begin(CallHistory::Kind::Method, name, name, {.process = 7_process}, call);
    record.history().end(call + 1, false);
    record.mark(7_process, call).finish();
    REQUIRE(replies.keep(7_process, call, troupe::detail::Payload{.bytes = name, .refs = {}}, {}) !=
            0);
    REQUIRE(::write(::fileno(file), "printed", 7) == 7);
  }
  struct stat memory {};
  REQUIRE(::fstat(record.descriptor().get(), &memory) == 0);
  constexpr long kBlockBytes = 512, kPageBytes = 4096;  // as stat counts, and as mmap gives
  CHECK(memory.st_blocks * kBlockBytes == 3 * kPageBytes);
  CHECK(record.labels_since(0).size() == 20);
  CHECK(record.history().read().spans.size() == 20);
  CHECK(record.read().replies.size() == 20);
  std::fclose(file);
}
