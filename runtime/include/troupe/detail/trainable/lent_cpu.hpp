#pragma once

#include <troupe/detail/core.hpp>

namespace troupe::detail {

/// For as long as it lives, the CPU of the task or the actor's method whose thread makes it is lent to
/// others, for a function that waits for one event after another and does next to nothing between
/// them: a search whose trials run elsewhere. Its end waits until a CPU is free again, half a second
/// at most. On a thread of the program's own it does nothing: each wait there lends what it may lend
/// (CpuUse::OfProgram), because the call may go on meanwhile, or end. Belongs to one thread.
class [[nodiscard]] LentCpu {
 public:
  LentCpu();
  ~LentCpu();
  LentCpu(const LentCpu&) = delete;
  LentCpu& operator=(const LentCpu&) = delete;

 private:
  const bool lends_;
  const CpuUser user_;  // where it lends, what waits meanwhile lends nothing more
};

}  // namespace troupe::detail
