#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace troupe {

/// Where the ranks of one gang exchange small facts (an address, an NCCL id) before they can talk directly.
/// Keys are written once. Any thread of the process may call. Behind it in a cluster: a table in rank 0's process.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  /// Publishes `value`, at most 64 KiB. Throws Refused if the key was set to another value before.
  virtual void set(std::string_view key, std::string_view value) = 0;

  /// Waits until somebody has set `key`. Throws TimedOut (naming the key) at the deadline and
  /// GangBroken as soon as the gang is.
  virtual std::string get(std::string_view key, std::chrono::milliseconds timeout) = 0;
};

}  // namespace troupe
