#pragma once

namespace troupe::os {

/// How many files a node may have open is what bounds its worker processes: each takes two
/// descriptors there. Raises this process's soft limit (RLIMIT_NOFILE, mostly 1,024) to the hard
/// one; the first call counts, from any thread.
void raise_open_files_limit();

/// For a child that is about to execute a program, which is to have the limit that this process was
/// started with: programs may rely on a small one (select(), loops over all descriptors).
/// Async-signal-safe.
void restore_open_files_limit();

}  // namespace troupe::os
