#pragma once

namespace troupe::node {

/// Takes what malloc has free between memory in use, for good, on the one thread of a zygote: what a
/// worker process allocates then lies together on new pages. In free chunks all over the heap it
/// would have the kernel copy a page for each of them. Takes none where more than 64 MiB are free
/// there. False where malloc is another's than that of glibc 2.33 or newer, of which nothing is taken.
bool take_free_chunks();

}  // namespace troupe::node
