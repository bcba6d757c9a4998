#include "calls/execution_record.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring/control.hpp"
#include "ring/segment.hpp"

namespace troupe::runtime {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kMagic = 0x36'44'52'43'45'52'54'00;  // "TRECRD6"

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

/// On a line of its own: the writer's processor core keeps it.
struct alignas(64) ExecutionRecord::Entry {
  std::atomic<std::uint64_t> caller{0};  // a process id; 0: free
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> finished{0};
};

/// Memory that is zero is one without callers. Of the entries the last ones are used first.
struct ExecutionRecord::Page {
  Entry entries[kCallers];
  alignas(64) std::uint64_t magic;
  std::atomic<std::uint64_t> forgotten;  // callers whose entry was used again
};

/// What every process writes lies on three pages, and what few processes write lies around them. The
/// first one has the callers that came first, and the first 2 KiB of replies; the second one the
/// first labels, and the third one the first spans of the history, with their names.
struct ExecutionRecord::Layout {
  static constexpr std::size_t kPageOffset = kPageBytes / 2;
  static constexpr std::size_t kRepliesOffset = kPageOffset + sizeof(Page);
  static constexpr std::size_t kLabelsOffset = whole_pages(kRepliesOffset + ReplyLog::bytes());
  static_assert(kRepliesOffset % alignof(ring::Control) == 0 && kRepliesOffset > kPageBytes &&
                kRepliesOffset + sizeof(ring::Control) + 1024 < 2 * kPageBytes);

  static std::size_t history_offset() { return kLabelsOffset + whole_pages(LabelHistory::bytes()); }
  static std::size_t bytes() { return history_offset() + whole_pages(CallHistory::bytes()); }

  static char* map(int descriptor) {
    void* memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
};

std::optional<ExecutionRecord> ExecutionRecord::create() {
  auto descriptor = ring::sealed_memory("troupe-record", Layout::bytes());
  char* memory = descriptor ? Layout::map(descriptor.get()) : nullptr;
  if (!memory) return std::nullopt;
  ExecutionRecord record(memory, std::move(descriptor));
  record.page_->magic = kMagic;
  return record;
}

std::variant<ExecutionRecord, std::string> ExecutionRecord::adopt(const os::UniqueFd& descriptor) {
  if (auto wrong = ring::check_sealed(descriptor.get(), Layout::bytes()); !wrong.empty())
    return wrong;
  char* memory = Layout::map(descriptor.get());
  if (!memory) return std::string("it cannot be mapped: ") + std::strerror(errno);
  ExecutionRecord record(memory, os::UniqueFd());
  if (record.page_->magic != kMagic) return "it is no page of an execution record";
  return record;
}

ExecutionRecord::ExecutionRecord(char* memory, os::UniqueFd descriptor)
    : memory_(memory),
      page_(reinterpret_cast<Page*>(memory + Layout::kPageOffset)),
      labels_(memory + Layout::kLabelsOffset),
      history_(memory + Layout::history_offset()),
      descriptor_(std::move(descriptor)) {}

ExecutionRecord::ExecutionRecord(ExecutionRecord&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      page_(std::exchange(other.page_, nullptr)),
      labels_(std::move(other.labels_)),
      history_(other.history_),
      descriptor_(std::move(other.descriptor_)),
      output_(std::move(other.output_)),
      last_(std::exchange(other.last_, nullptr)),
      next_(other.next_) {}

ExecutionRecord& ExecutionRecord::operator=(ExecutionRecord&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(page_, other.page_);
  std::swap(labels_, other.labels_);
  std::swap(history_, other.history_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(output_, other.output_);
  std::swap(last_, other.last_);
  std::swap(next_, other.next_);
  return *this;
}

ExecutionRecord::~ExecutionRecord() {
  if (memory_) ::munmap(memory_, Layout::bytes());
}

ExecutionMark ExecutionRecord::mark(ProcessId caller, std::uint64_t call) {
  if (!last_ || last_->caller.load(std::memory_order_relaxed) != caller.value())
    last_ = &entry_of(caller);
  return {.begun = &last_->begun, .finished = &last_->finished, .number = call};
}

/// Looked at as far as they are in use: to read the others would take their page.
ExecutionRecord::Entry& ExecutionRecord::entry_of(ProcessId caller) {
  const auto found = std::find_if(std::rbegin(page_->entries), std::rend(page_->entries),
                                  [caller](const Entry& entry) {
                                    const auto is = entry.caller.load(std::memory_order_relaxed);
                                    return is == caller.value() || is == 0;
                                  });
  Entry* entry = nullptr;
  if (found != std::rend(page_->entries)) {
    entry = &*found;
    if (entry->caller.load(std::memory_order_relaxed) != 0) return *entry;
  } else {
    page_->forgotten.fetch_add(1, std::memory_order_release);
    entry = &page_->entries[kCallers - 1 - next_++ % kCallers];
    entry->caller.store(0, std::memory_order_release);
  }
  entry->begun.store(0, std::memory_order_release);
  entry->finished.store(0, std::memory_order_release);
  entry->caller.store(caller.value(), std::memory_order_release);
  return *entry;
}

void ExecutionRecord::note_output(int descriptor) {
  output_.reset(::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

/// The file is opened to append: its position is behind what this process has written last.
void ExecutionRecord::set_label(std::string_view label) {
  if (!output_) return;
  const auto position = ::lseek(output_.get(), 0, SEEK_CUR);
  if (position >= 0) labels_.change(label, static_cast<std::uint64_t>(position));
}

ExecutionRecord::Report ExecutionRecord::read() const {
  Report report{.callers = {}, .complete = page_->forgotten.load(std::memory_order_acquire) == 0};
  for (const auto& entry : page_->entries) {
    const auto caller = entry.caller.load(std::memory_order_acquire);
    if (caller == 0) continue;
    report.callers.push_back(
        {.process = ProcessId(caller),
         .calls = {.begun = entry.begun.load(std::memory_order_acquire),
                   .finished = entry.finished.load(std::memory_order_acquire)}});
  }
  report.replies = ReplyLog::read(reply_memory());
  return report;
}

void* ExecutionRecord::reply_memory() const { return memory_ + Layout::kRepliesOffset; }

}  // namespace troupe::runtime
