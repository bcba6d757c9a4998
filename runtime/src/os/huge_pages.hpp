#pragma once

namespace troupe::os {

/// Brings the heap of this process (what malloc has from brk) into pages of 2 MiB where the kernel
/// can do that (Linux 6.1): a fork then copies one entry of the page table where it copied 512, and
/// the end of a child undoes one. Of what a child writes to 4 KiB are copied, as before. Costs a
/// copy of the heap, once, which is no longer shared with a parent then; a heap of more than 256
/// MiB, and what the kernel refuses, is left as it is.
void gather_huge_pages();

}  // namespace troupe::os
