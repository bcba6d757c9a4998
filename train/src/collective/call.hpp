#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/gang_context.hpp>
#include <troupe/train/communicator.hpp>

namespace troupe::train {

enum class CallKind : std::uint8_t { Start, AllReduce, Broadcast, AllGather, ReduceScatter, Barrier, Allocate };

/// What a rank says it is about to do. All ranks must say the same.
struct Announcement {
  std::uint64_t sequence = 0;  ///< 0, 1, 2, ... over the communicator's calls
  std::uint64_t count = 0;
  CallKind kind = CallKind::Start;
  DataType type = DataType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  std::uint8_t unused = 0;
  std::int32_t root = 0;
  friend bool operator==(const Announcement&, const Announcement&) = default;
};

/// "all_reduce of 5 float32 (sum), call 3".
std::string to_string(const Announcement& what);

/// Throws std::invalid_argument naming both ranks and what each called, if they differ.
void check_same(int rank, const Announcement& mine, int peer, const Announcement& theirs);

/// What a wait inside a collective looks at: the deadline and the gang's broken word. Asked only when a wait is slow, so
/// the clock of a quick call is never read. One per communicator; used by the thread that makes the call.
class Patience {
 public:
  Patience(GangContext& gang, std::chrono::milliseconds timeout) : gang_(gang), timeout_(timeout) {}

  /// The next call begins: its time starts to count at the first check().
  void begin(const Announcement& what) {
    what_ = what;
    counting_ = false;
  }
  const Announcement& what() const { return what_; }

  bool gang_is_broken() const { return gang_.broken().load(std::memory_order_relaxed) != 0; }
  /// Throws GangBroken if the gang is. -> whether the deadline has passed.
  bool expired();
  [[noreturn]] void throw_broken() const;
  /// Throws TimedOut; `missing`: ranks that have not come.
  [[noreturn]] void throw_timed_out(const std::vector<int>& missing) const;
  /// Throws GangBroken: "<cause> (noticed by rank 0 in all_reduce ...)".
  [[noreturn]] void throw_gone(const std::string& cause) const;

  GangContext& gang() const { return gang_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  using Clock = std::chrono::steady_clock;
  GangContext& gang_;
  std::chrono::milliseconds timeout_;
  Announcement what_;
  bool counting_ = false;
  Clock::time_point deadline_;
};

}  // namespace troupe::train
