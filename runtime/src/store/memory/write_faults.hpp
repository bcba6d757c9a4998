#pragma once

#include <cstddef>
#include <span>

namespace troupe::store {

/// Whoever writes to a value that others read too is ended by SIGSEGV: its memory is mapped
/// read-only. Says why on stderr before that, of addresses in these bytes, until forget_read_only()
/// of the same ones. A program that handles SIGSEGV itself keeps its handler, and nothing is said.
/// At most some dozens of ranges at a time; further ones are left out. Any thread.
void explain_writes_to(std::span<const std::byte> read_only);
void forget_read_only(std::span<const std::byte> read_only);

}  // namespace troupe::store
