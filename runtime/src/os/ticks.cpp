#include "os/ticks.hpp"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::os {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t kLongEnoughNs = 10'000'000;

/// "Invariant TSC": one rate in all states of the processor. Linux starts all processors' counters
/// together, and so do hypervisors that offer it.
bool has_invariant_counter() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
#else
  return false;
#endif
}

}  // namespace

const bool kProcessorTicks = has_invariant_counter();  // before the first reading below

namespace {

struct Reading {
  Ticks ticks = 0;
  std::uint64_t ns = 0;
};

/// The ticks in the middle of a reading of the clock.
template <class Clock>
Reading read_both(Clock clock) {
  const auto before = ticks();
  const auto ns = clock();
  return {.ticks = before + (ticks() - before) / 2, .ns = ns};
}

// A copy that is forked goes on with what its parent has measured.
const Reading started = read_both(monotonic_ns);
std::atomic<double> known_rate{0};

double rate_since_start() {
  if (!kProcessorTicks) return 1;
  const auto now = read_both(monotonic_ns);
  if (now.ticks <= started.ticks || now.ns <= started.ns) return 1;
  const auto rate =
      static_cast<double>(now.ns - started.ns) / static_cast<double>(now.ticks - started.ticks);
  if (now.ns - started.ns > kLongEnoughNs) known_rate.store(rate, std::memory_order_relaxed);
  return rate;
}

}  // namespace

nanoseconds duration_of(Ticks ticks) {
  const auto known = known_rate.load(std::memory_order_relaxed);
  const auto rate = known > 0 ? known : rate_since_start();
  return nanoseconds(static_cast<std::int64_t>(static_cast<double>(ticks) * rate));
}

TickScale TickScale::now() {
  const auto reading = read_both(os::unix_ns);
  return {.ticks = reading.ticks, .unix_ns = reading.ns, .ns_per_tick = rate_since_start()};
}

std::uint64_t TickScale::unix_ns_of(Ticks at) const {
  const auto since = static_cast<double>(static_cast<std::int64_t>(at - ticks)) * ns_per_tick;
  return unix_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(since));
}

std::uint64_t unix_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace troupe::os
