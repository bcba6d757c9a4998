#include "process/doorbell.hpp"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::process {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value, timeout,
                 nullptr, 0);
}

}  // namespace

Deadline deadline_after(std::optional<std::chrono::milliseconds> timeout) {
  if (!timeout) return std::nullopt;
  return Clock::now() + *timeout;
}

Doorbell& doorbell() {
  static Doorbell bell;
  return bell;
}

void Doorbell::ring() {
  // Sequentially consistent with the sleeper's announcement: either the sleeper sees the new count, or we see it.
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex(rings_, FUTEX_WAKE, INT_MAX, nullptr);
}

bool Doorbell::sleep(std::uint32_t seen, Deadline deadline) {
  timespec left{};
  if (deadline) {
    const auto rest = std::chrono::nanoseconds(*deadline - Clock::now()).count();
    if (rest <= 0) return false;
    left = {rest / 1'000'000'000, rest % 1'000'000'000};
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex(rings_, FUTEX_WAIT, seen, deadline ? &left : nullptr);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  return true;
}

}  // namespace troupe::process
