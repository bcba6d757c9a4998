#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace troupe::os {

/// A point in time for what happens a million times in a second: a third of the cost of
/// clock_gettime. All processes of a machine count the same ticks, from the same beginning: those of
/// the processor, where the processor says that they have one rate whatever it does, else the
/// nanoseconds of CLOCK_MONOTONIC. Any thread.
using Ticks = std::uint64_t;

/// The processor's own ticks are counted, and not nanoseconds.
extern const bool kProcessorTicks;

inline std::uint64_t monotonic_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

inline Ticks ticks() {
#if defined(__x86_64__)
  if (kProcessorTicks) return __rdtsc();
#endif
  return monotonic_ns();
}

/// How long so many ticks are. Known to 10 millionths once this program has run for 10 ms.
std::chrono::nanoseconds duration_of(Ticks ticks);

/// What a clock on the wall showed at some ticks: two readings in the same moment.
struct TickScale {
  Ticks ticks = 0;
  std::uint64_t unix_ns = 0;  ///< since 1970
  double ns_per_tick = 1;     ///< measured since this program was started

  static TickScale now();
  std::uint64_t unix_ns_of(Ticks at) const;
};

/// CLOCK_REALTIME: nanoseconds since 1970.
std::uint64_t unix_ns();

}  // namespace troupe::os
