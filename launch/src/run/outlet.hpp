#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::launch {

/// A standard stream of this process, to which somebody may be slow to listen, or not at all: what
/// is put waits here until it can be written, and nobody waits longer than he says, also where the
/// reader takes a little now and then. Used by one thread.
///
///   [empty] --put--> [waits] --drain, all is out--> [empty];  [waits] --a write fails--> [broken]
class Outlet {
 public:
  enum class State : std::uint8_t { Empty, Waits, Broken };

  explicit Outlet(int descriptor);

  void put(std::string_view text);
  /// Writes what waits, for so long at most; at 0, what can be written without waiting. Once
  /// broken, what waits is lost.
  State drain(std::chrono::milliseconds patience);
  /// Bytes that wait.
  std::size_t waiting() const { return waiting_.size() - written_; }

 private:
  void forget_written();

  const int descriptor_;
  const std::size_t piece_;  // that a write takes without waiting, where poll() says it can
  std::string waiting_;
  std::size_t written_ = 0;  // of it
  bool broken_ = false;
};

}  // namespace troupe::launch
