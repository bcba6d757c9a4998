#include "node/guard/mark.hpp"

#include <algorithm>

#include <sys/resource.h>

namespace troupe::node {
namespace {

/// Of a process without a limit: as many worker processes as there will ever be fit below that.
constexpr std::uint64_t kUnmarked = std::uint64_t{1} << 62;

std::uint64_t mark_in(const rlimit& limit) {
  return std::min<std::uint64_t>(limit.rlim_max, kUnmarked);
}

std::uint64_t own_mark() {
  rlimit limit{};
  ::getrlimit(RLIMIT_LOCKS, &limit);
  return mark_in(limit);
}

}  // namespace

void lower_mark(std::uint64_t by) {
  const auto mark = own_mark();
  const rlim_t lower = mark - std::min(mark, by);
  const rlimit limit{lower, lower};
  ::setrlimit(RLIMIT_LOCKS, &limit);
}

std::uint64_t mark_of_child(pid_t child) {
  rlimit limit{};
  if (::prlimit(child, RLIMIT_LOCKS, nullptr, &limit) != 0) return 0;
  const auto own = own_mark();
  return own - std::min(own, mark_in(limit));
}

}  // namespace troupe::node
