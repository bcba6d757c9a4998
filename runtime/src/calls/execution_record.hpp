#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calls/deaths/reply_log.hpp"
#include "calls/output/label_history.hpp"
#include "calls/progress.hpp"
#include "calls/timeline/call_history.hpp"
#include "ids/ids.hpp"
#include "os/unique_fd.hpp"

namespace troupe::runtime {

/// Two words that outlive the process which writes them: the numbers of the call that it began
/// last, and of the one that it finished last. A value; two pointers.
struct ExecutionMark {
  std::atomic<std::uint64_t>* begun = nullptr;
  std::atomic<std::uint64_t>* finished = nullptr;
  std::uint64_t number = 0;

  void begin() const {
    if (begun) begun->store(number, std::memory_order_release);
  }
  void finish() const {
    if (finished) finished->store(number, std::memory_order_release);
  }
};

/// A page in which a worker process notes, for each caller that reaches it through a socket, which
/// call it began and which one it finished last. Its node makes the page, and reads it once the
/// process has ended: what a killed process did is then known, whatever it had no time to say.
/// (Calls through a ring are noted in the ring's own memory.)
///
/// Behind the page stands what ran there while which of its output was printed, which calls ran
/// there when, and the replies that its callers may not have had: 1,092 KiB, of which what was never
/// written to takes no memory.
///
/// The worker's executor is the only writer. A page has room for kCallers: after that the entry of
/// a caller whose calls have finished is used again, and of callers without an entry nothing is
/// known.
class ExecutionRecord {
 public:
  static constexpr std::size_t kCallers = 59;

  /// A new page; nullopt and errno where the system has none.
  static std::optional<ExecutionRecord> create();
  /// The page that the node has made; a text where it is none.
  static std::variant<ExecutionRecord, std::string> adopt(const os::UniqueFd& descriptor);

  ExecutionRecord(ExecutionRecord&& other) noexcept;
  ExecutionRecord& operator=(ExecutionRecord&& other) noexcept;
  ~ExecutionRecord();

  /// To be sent to the process; may be closed then.
  os::UniqueFd& descriptor() { return descriptor_; }

  /// The executor: where it notes this call of this caller.
  ExecutionMark mark(ProcessId caller, std::uint64_t call);

  /// The worker process, before its executor begins: the file that it prints to.
  void note_output(int descriptor);
  /// The executor: what it runs from now on, for people. Nothing is noted without a file. One system
  /// call (lseek).
  void set_label(std::string_view label);
  /// What ran as the output from `position` on was printed; any time, after that was read.
  std::vector<LabelHistory::Span> labels_since(std::uint64_t position) const {
    return labels_.since(position);
  }

  /// Which calls ran when: the executor writes, the node reads at any time.
  CallHistory& history() { return history_; }
  const CallHistory& history() const { return history_; }

  /// The worker process, for its ReplyLog; as long as the record lives.
  void* reply_memory() const;

  struct Caller {
    ProcessId process{};
    CallsSeen calls;
  };
  struct Report {
    std::vector<Caller> callers;
    bool complete = true;  ///< a caller that is not listed has had nothing begun
    std::vector<KeptReply> replies = {};
  };
  /// After the end of the process.
  Report read() const;

 private:
  struct Entry;
  struct Page;
  struct Layout;
  ExecutionRecord(char* memory, os::UniqueFd descriptor);
  Entry& entry_of(ProcessId caller);

  char* memory_ = nullptr;
  Page* page_ = nullptr;  // in it
  LabelHistory labels_;
  CallHistory history_;
  os::UniqueFd descriptor_;
  os::UniqueFd output_;  // the executor's, whatever user code does with its own
  Entry* last_ = nullptr;
  std::size_t next_ = 0;  // to be used again
};

}  // namespace troupe::runtime
