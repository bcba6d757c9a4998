#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace troupe::node {

/// So many bytes in each second, which begins with the first use after the last one. A value; time
/// is passed in.
class OutputBudget {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kWindow{1};

  explicit OutputBudget(std::uint64_t bytes) : bytes_(bytes) {}

  std::uint64_t left(Clock::time_point now) const {
    return now >= began_ + kWindow ? bytes_ : bytes_ - used_;
  }
  void use(std::uint64_t bytes, Clock::time_point now) {
    if (now >= began_ + kWindow) {
      began_ = now;
      used_ = 0;
    }
    used_ = std::min(bytes_, used_ + bytes);
  }

 private:
  std::uint64_t bytes_;
  std::uint64_t used_ = 0;
  Clock::time_point began_{};
};

/// How to go on in a file of which `unread` bytes wait, where `left` may be read of the `most` in a
/// second: a reader that is more than a second behind leaves out what is older, once there is a
/// second's worth to be read again. Pure.
struct ReadPlan {
  std::uint64_t skip = 0;
  std::uint64_t read = 0;
};
inline ReadPlan plan_read(std::uint64_t unread, std::uint64_t left, std::uint64_t most) {
  if (unread > most && left == most) return {.skip = unread - most, .read = most};
  return {.skip = 0, .read = std::min(unread, left)};
}

}  // namespace troupe::node
