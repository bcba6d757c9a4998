#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::launch {

/// Runs tar(1), out of reach of a terminal's Ctrl-C. `output`, `error`: the descriptors that become
/// its standard output and error; -1: this process's. -> its process, to be waited for with
/// tar_status(). Throws Refused where there is no tar.
pid_t start_tar(std::vector<std::string> arguments, int output, int error = -1);

/// Waits for it. -> its exit status: 1, as it packs, is of a file that changed meanwhile. -1: a
/// signal ended it.
int tar_status(pid_t pid);

}  // namespace troupe::launch
