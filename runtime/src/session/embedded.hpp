#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/cluster.hpp>

#include "transport/handshake/handshake.hpp"

namespace troupe::runtime {

/// A private cluster: a child process of this one, the guardian; as its child one with a head and a
/// node in it, reached by a unix socket; and under that a zygote, forked before it does anything
/// else. It ends when this process ends, however that happens (it watches a pidfd), or when the
/// driver's session does.
class Embedded {
 public:
  /// Throws Refused with what the child said, or TimedOut. Forks where this process has one thread;
  /// where it has more, a fork could copy a held lock, so the program is executed anew up to
  /// troupe::init.
  explicit Embedded(const InitOptions& options, const std::vector<std::string>& command_line);
  /// Waits until the child and all of its processes are gone.
  ~Embedded();
  Embedded(const Embedded&) = delete;
  Embedded& operator=(const Embedded&) = delete;

  transport::Endpoint head() const { return head_; }
  const transport::Secret& token() const { return token_; }

 private:
  pid_t child_ = 0;
  transport::Endpoint head_;
  transport::Secret token_{};
};

/// The child's life after an exec ("embedded:FD" in the boot variable): reads its options from
/// `control`, and serves.
[[noreturn]] void serve_embedded(int control);

}  // namespace troupe::runtime
