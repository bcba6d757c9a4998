#pragma once

namespace troupe::runtime {

/// A worker process from here on: configures itself by the first message on `link` (the socket to
/// its node), runs what it is asked on this thread, and ends with the link. The one thread so far
/// of this process calls it.
[[noreturn]] void run_worker(int link);

}  // namespace troupe::runtime
