#pragma once

namespace troupe::os {

/// Writes what stands in the buffers of stdout and stderr: text that has no line end yet. Costs a
/// look at each where there is none. Iostreams that the program has parted from stdio have buffers
/// of their own. Those are written where they are not so with each `<<` anyhow (std::unitbuf):
/// another thread of the program may be writing to them, and they have no lock.
void flush_standard_output();

}  // namespace troupe::os
