#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Where the ranks of one gang exchange small facts (an address, an NCCL id) before they can talk
/// directly. Keys are written once. Any thread of the process may call. In a cluster it is a table
/// in rank 0's process.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  /// Publishes `value`, at most 64 KiB. Throws Refused if the key was set to another value before.
  virtual void set(std::string_view key, std::string_view value) = 0;

  /// Waits until a rank has set `key`. Throws TimedOut (naming the key) at the deadline, and
  /// GangBroken as soon as the gang is broken.
  virtual std::string get(std::string_view key, std::chrono::milliseconds timeout) = 0;

  /// Raises a counter to `count`, with a note (at most 64 KiB) on this step. Use it for repeated
  /// events, in place of a key for each. Throws Refused if the counter is already higher.
  virtual void advance(std::string_view counter, std::uint64_t count, std::string_view note) {
    set(step(counter, count), note);
  }
  /// Waits until the counter is at least `count`. -> the note of that step; empty if the counter
  /// may be higher. Throws as get() does.
  virtual std::string await(std::string_view counter, std::uint64_t count,
                            std::chrono::milliseconds timeout) {
    return get(step(counter, count), timeout);
  }

  /// Says that no rank will ask any more for keys that begin with `prefix`.
  virtual void forget(std::string_view /*prefix*/) {}

 private:
  static std::string step(std::string_view counter, std::uint64_t count) {
    return std::string(counter) + "/" + std::to_string(count);
  }
};

}  // namespace troupe
