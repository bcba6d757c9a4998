#pragma once

#include <string>

#include "os/unique_fd.hpp"

namespace troupe::node {

/// What a node has of its guardian.
struct Guardian {
  os::UniqueFd
      lifeline;  ///< can be read once the guardian is gone: then the node is to end everything itself
  std::string
      described;  ///< for messages: "the process that was started as `troupe worker` (pid 12)"
};

/// Forks, and returns in the child, which is to be the node. The process that called becomes the
/// child's guardian: it passes signals on to it, ends what the node has left once that is gone,
/// however the node ended, and ends as the node did. Of the node it keeps nothing open but, where
/// `name` is given, as "troupe worker", its standard error: there it says that a signal has ended
/// the node, which could not say so itself.
/// To be called with one thread. Throws Error where there can be no child.
///
///   guardian ── node ──┬── zygote                      Both are child subreapers: a process that user code leaves behind,
///   (this process)     ├── worker process ── child     whatever its session, becomes a child of the node, and with all
///                      └── child of one that ended     others a child of the guardian once the node is gone.
///
/// The child leads a process group of its own, so that no signal to the group of its guardian ends both.
/// Children that this process had before, as one that a shell executed may have, are left alone.
Guardian run_under_guardian(const std::string& name = {});

}  // namespace troupe::node
