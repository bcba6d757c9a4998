#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calls/output/name_table.hpp"
#include "ids/ids.hpp"
#include "os/ticks.hpp"

namespace troupe::runtime {

/// Which calls a worker process has run, and when: the last kSpans of them, for `troupe timeline`.
/// Lives in zeroed memory that two processes share: the executor of the worker process is the only
/// writer, the node reads at any time, also after the writer was killed in the middle.
///
///   1. A call is here from before the user's code for it begins. One that has no end was under way
///      as its process ended, or is now.
///   2. A span is read whole or not at all, whatever the writer does meanwhile.
///   3. Spans of one process lie one behind the other, or a wait within its call.
///   4. Kept are the last kSpans - 1, and always the call that is under way.
///   5. The writer makes no system call, takes no lock and allocates nothing for a function that it
///      has met before: a few stores into 32 bytes.
class CallHistory {
 public:
  static constexpr std::size_t kSpans = 16384;
  static constexpr std::size_t kNames = 256;
  static std::size_t bytes();

  /// As Work::Kind, and a wait of user code within a call.
  enum class Kind : std::uint8_t { Task = 0, Constructor = 1, Method = 2, Wait = 3 };

  explicit CallHistory(void* memory);

  // ---- the writer

  /// Who called, and when.
  struct Caller {
    ProcessId process{};
    /// How long before the call began here its caller made it; of another clock than this
    /// machine's ticks where `by_clock`: nanoseconds between two clocks on walls.
    std::uint64_t waited = 0;
    bool by_clock = false;
  };
  /// `identity` is that of the name, which is static storage.
  void begin(Kind kind, const void* identity, std::string_view name, const Caller& caller,
             os::Ticks now);
  /// Of the call that was begun last, and of a wait within it.
  void end(os::Ticks now, bool failed);
  /// Nothing where no call is under way.
  void begin_wait(os::Ticks now);
  void end_wait(os::Ticks now);
  /// What the process is, for people: an actor's type, a rank. Kept beside the spans.
  void set_role(std::string_view role);

  // ---- the reader

  struct Span {
    os::Ticks begin = 0;
    os::Ticks end = 0;  ///< 0: it has none
    std::uint64_t waited = 0;
    ProcessId caller{};
    Kind kind = Kind::Task;
    bool failed = false;
    bool by_clock = false;
    std::string name;  ///< empty: not known any more
  };
  struct Content {
    std::string role;
    std::uint64_t overwritten = 0;  ///< spans that were here before
    std::vector<Span> spans;
  };
  /// A copy of what is there: up to a millisecond.
  Content read() const;
  /// The call that is under way, and behind it the wait of its code that is; else nothing. Looks
  /// at one span, and at one more for each wait of the call that is over.
  Content read_running() const;
  /// No call was ever begun.
  bool empty() const;

 private:
  struct Slot;
  struct Memory;
  struct Words {
    std::uint64_t begin, end, name_and_waited, caller_and_kind;
  };

  Slot& slot(std::uint64_t index) const;
  std::uint64_t append(const Words& words);
  Words words_of(std::uint64_t index) const;
  Span span_of(const Words& words) const;
  std::uint64_t first_whole(std::uint64_t count) const;
  void finish(std::uint64_t index, std::uint64_t end);
  std::uint64_t name_id(const void* identity, std::string_view name);

  struct KnownName {
    const void* identity = nullptr;
    std::uint64_t id = 0;
  };
  Memory* memory_;
  NameTable names_;
  NameTable role_;
  // the writer's
  std::uint64_t count_ = 0;          // of spans, those included that were overwritten
  std::uint64_t call_ = kNone;       // under way
  std::uint64_t wait_ = kNone;       // under way, within it
  std::array<KnownName, 64> known_;  // by the last bits of the identity
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
};

}  // namespace troupe::runtime
