#pragma once

#include <troupe/detail/core.hpp>

namespace troupe::detail {

/// For as long as it lives, the CPU of a task or an actor's method that makes it is lent to others,
/// for a function that waits for one event after another and does next to nothing between them: a
/// search whose trials run elsewhere. The thread that makes it may be one of the program's own. Where
/// the process holds nothing for a call, nothing is lent. Its end waits until a CPU is free again, half a
/// second at most. Belongs to one thread.
class [[nodiscard]] LentCpu {
 public:
  LentCpu();
  ~LentCpu();
  LentCpu(const LentCpu&) = delete;
  LentCpu& operator=(const LentCpu&) = delete;

 private:
  const bool lends_;
  const CpuUser uses_none_{CpuUse::None};  // what waits meanwhile lends nothing more
};

}  // namespace troupe::detail
