#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Where the ranks of one gang exchange small facts (an address, an NCCL id) before they can talk
/// directly. Keys are written once. Any thread of the process may call. Behind it in a cluster: a
/// table in rank 0's process.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  /// Publishes `value`, at most 64 KiB. Throws Refused if the key was set to another value before.
  virtual void set(std::string_view key, std::string_view value) = 0;

  /// Waits until somebody has set `key`. Throws TimedOut (naming the key) at the deadline and
  /// GangBroken as soon as the gang is.
  virtual std::string get(std::string_view key, std::chrono::milliseconds timeout) = 0;

  /// Brings a counter, which only grows, to `count`, with a note (at most 64 KiB) on this step: of
  /// a thing that happens again and again, in place of a key for each time. Throws Refused if the
  /// counter is beyond it already.
  virtual void advance(std::string_view counter, std::uint64_t count, std::string_view note) {
    set(step(counter, count), note);
  }
  /// Waits until the counter is at `count` or beyond. -> the note of that step; empty where the
  /// counter may be beyond it. Throws as get() does.
  virtual std::string await(std::string_view counter, std::uint64_t count,
                            std::chrono::milliseconds timeout) {
    return get(step(counter, count), timeout);
  }

  /// What begins with `prefix` is not asked for any more, by any rank.
  virtual void forget(std::string_view /*prefix*/) {}

 private:
  static std::string step(std::string_view counter, std::uint64_t count) {
    return std::string(counter) + "/" + std::to_string(count);
  }
};

}  // namespace troupe
