#include "calls/execution_record.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring/segment.hpp"

namespace troupe::runtime {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kMagic = 0x35'44'52'43'45'52'54'00;  // "TRECRD5"

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// Behind the page and the labels, on pages of its own: others are not touched for it.
std::size_t history_offset() { return kPageBytes + whole_pages(LabelHistory::bytes()); }

std::size_t replies_offset() { return history_offset() + whole_pages(CallHistory::bytes()); }

/// The page and what is behind it.
std::size_t all_bytes() { return replies_offset() + whole_pages(ReplyLog::bytes()); }

void* map_page(int descriptor) {
  void* memory = ::mmap(nullptr, all_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

/// On a line of its own: the writer's processor core keeps it.
struct alignas(64) ExecutionRecord::Entry {
  std::atomic<std::uint64_t> caller{0};  // a process id; 0: free
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> finished{0};
};

struct ExecutionRecord::Page {
  alignas(64) std::uint64_t magic = kMagic;
  std::atomic<std::uint64_t> forgotten{0};  // callers whose entry was used again
  Entry entries[kCallers];
};

std::optional<ExecutionRecord> ExecutionRecord::create() {
  static_assert(sizeof(Page) <= kPageBytes);
  auto descriptor = ring::sealed_memory("troupe-record", all_bytes());
  void* memory = descriptor ? map_page(descriptor.get()) : nullptr;
  if (!memory) return std::nullopt;
  return ExecutionRecord(new (memory) Page, std::move(descriptor));
}

std::variant<ExecutionRecord, std::string> ExecutionRecord::adopt(const os::UniqueFd& descriptor) {
  if (auto wrong = ring::check_sealed(descriptor.get(), all_bytes()); !wrong.empty()) return wrong;
  void* memory = map_page(descriptor.get());
  if (!memory) return std::string("it cannot be mapped: ") + std::strerror(errno);
  ExecutionRecord record(static_cast<Page*>(memory), os::UniqueFd());
  if (record.page_->magic != kMagic) return "it is no page of an execution record";
  return record;
}

ExecutionRecord::ExecutionRecord(Page* page, os::UniqueFd descriptor)
    : page_(page),
      labels_(reinterpret_cast<char*>(page) + kPageBytes),
      history_(reinterpret_cast<char*>(page) + history_offset()),
      descriptor_(std::move(descriptor)) {}

ExecutionRecord::ExecutionRecord(ExecutionRecord&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)),
      labels_(std::move(other.labels_)),
      history_(other.history_),
      descriptor_(std::move(other.descriptor_)),
      output_(std::move(other.output_)),
      last_(std::exchange(other.last_, nullptr)),
      next_(other.next_) {}

ExecutionRecord& ExecutionRecord::operator=(ExecutionRecord&& other) noexcept {
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
  if (page_) ::munmap(page_, all_bytes());
}

ExecutionMark ExecutionRecord::mark(ProcessId caller, std::uint64_t call) {
  if (!last_ || last_->caller.load(std::memory_order_relaxed) != caller.value())
    last_ = &entry_of(caller);
  return {.begun = &last_->begun, .finished = &last_->finished, .number = call};
}

ExecutionRecord::Entry& ExecutionRecord::entry_of(ProcessId caller) {
  const auto is = [](std::uint64_t wanted) {
    return [wanted](const Entry& entry) {
      return entry.caller.load(std::memory_order_relaxed) == wanted;
    };
  };
  auto* found = std::ranges::find_if(page_->entries, is(caller.value()));
  if (found != std::end(page_->entries)) return *found;
  found = std::ranges::find_if(page_->entries, is(0));
  if (found == std::end(page_->entries)) {
    page_->forgotten.fetch_add(1, std::memory_order_release);
    found = &page_->entries[next_++ % kCallers];
    found->caller.store(0, std::memory_order_release);
  }
  found->begun.store(0, std::memory_order_release);
  found->finished.store(0, std::memory_order_release);
  found->caller.store(caller.value(), std::memory_order_release);
  return *found;
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

void* ExecutionRecord::reply_memory() const {
  return reinterpret_cast<char*>(page_) + replies_offset();
}

}  // namespace troupe::runtime
