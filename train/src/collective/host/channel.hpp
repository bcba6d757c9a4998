#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "collective/call.hpp"

namespace troupe::train {

/// A stream of bytes in both directions between this rank and one other, over shared memory or TCP.
/// Nothing in it blocks but wait_to_*. Owned by Pairs, used by the communicator's calling thread.
class Channel {
 public:
  explicit Channel(int peer) : peer_(peer) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int peer() const { return peer_; }
  std::uint64_t next_message() { return messages_++; }

  /// Moves what fits now; the span shrinks by it. -> whether anything was moved. Throws GangBroken
  /// where the other side has hung up.
  virtual bool put(std::span<const std::byte>& out) = 0;
  virtual bool take(std::span<std::byte>& in) = 0;
  /// Sleeps until put (take) may move something, at most `slice`; may wake for no reason.
  virtual void wait_to_put(std::chrono::milliseconds slice) = 0;
  virtual void wait_to_take(std::chrono::milliseconds slice) = 0;
  /// Whether the other side's process, or its communicator, is over. What it had put before can
  /// still be taken.
  virtual bool has_ended() const { return false; }
  [[noreturn]] virtual void throw_ended() const = 0;

 private:
  const int peer_;
  std::uint64_t messages_ = 0;
};

/// Puts all of `out` into `to` while taking all of `in` from `from`; the two may be the same, and
/// one span may be empty. Throws what `stop` throws, TimedOut naming the rank it waits for,
/// GangBroken.
void exchange(Patience& patience, const std::function<void()>& stop, Channel& to,
              std::span<const std::byte> out, Channel& from, std::span<std::byte> in);

}  // namespace troupe::train
