#pragma once

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/// Sleeping on a word in memory that processes share. (std::atomic::wait does not work between
/// processes.) The kernel finds the word by the page behind its address, so every process may have
/// it at another one.
namespace troupe::os {

/// Sleeps while `word` is `seen`, at most this long (nullptr: for ever); may wake for no reason.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                       const timespec* at_most) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, at_most, nullptr, 0);
}
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                       std::chrono::milliseconds at_most) {
  const timespec relative{at_most.count() / 1000, (at_most.count() % 1000) * 1'000'000};
  futex_wait(word, seen, &relative);
}

inline void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Tells the core that this thread spins.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace troupe::os
