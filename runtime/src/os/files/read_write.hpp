#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::os {

/// Writes all of the bytes, at the position of an open file. Throws std::system_error. Any thread.
void write_all(int fd, const void* bytes, std::size_t count);

/// Reads what an open file has from `at` on. -> the bytes read: fewer than `count` only where the
/// file ends. Throws std::system_error. Any thread, also several with one file.
std::uint64_t read_at(int fd, std::uint64_t at, void* into, std::uint64_t count);

}  // namespace troupe::os
