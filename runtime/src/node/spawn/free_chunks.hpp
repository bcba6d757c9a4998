#pragma once

namespace troupe::node {

/// Takes what malloc has free between memory in use, for good, on the one thread of a zygote: what a
/// worker process allocates then lies together on new pages. In free chunks all over the heap it
/// would have the kernel copy a page for each of them. Does nothing where more than 64 MiB are free
/// there, and with an allocator other than glibc's.
void take_free_chunks();

}  // namespace troupe::node
