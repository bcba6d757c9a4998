#include "ids/session.hpp"

#include <atomic>

namespace troupe::runtime {
namespace {

std::atomic<std::uint64_t> changes{0};  // begins and ends; odd: a session is under way

}  // namespace

std::uint64_t current_session() {
  const auto count = changes.load(std::memory_order_acquire);
  return count % 2 == 1 ? (count + 1) / 2 : 0;
}

void begin_session() { changes.fetch_add(1, std::memory_order_release); }
void end_session() { changes.fetch_add(1, std::memory_order_release); }

}  // namespace troupe::runtime
