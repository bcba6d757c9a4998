#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/resources.hpp>

namespace troupe::scheduler {

/// What one process holds of a node. Of each GPU: a whole one, or, where there is only one, the
/// amount of "gpu".
struct Share {
  Resources resources;
  std::vector<GpuIndex> gpus;

  void clear() {
    resources.clear();
    gpus.clear();
  }
};

/// What is free on a node (or would be, when idle): named amounts, and how much of each GPU. "gpu"
/// among the amounts is always the sum over the GPUs. A value.
class Capacity {
 public:
  Capacity() = default;
  /// "gpu" in `total` is replaced by `gpus`.
  Capacity(Resources total, std::uint32_t gpus);

  const Resources& amounts() const { return amounts_; }
  const std::vector<Amount>& gpus() const { return gpus_; }

  /// True if one process of this need has room: whole GPUs only from untouched ones, a fraction
  /// from a single one.
  bool fits(const Resources& need) const {
    if (!amounts_.covers(need)) return false;
    const auto gpu = need.of(kGpu);
    return gpu.is_zero() || has_gpus(gpu);
  }
  /// How many such processes have room, at most `limit`.
  std::size_t slots(const Resources& need, std::size_t limit) const;

  /// Asserts fits(need). A fraction goes to the fullest GPU that has room, so that untouched ones
  /// stay untouched.
  Share take(const Resources& need) {
    if (!need.gpu().is_zero()) return take_with_gpus(need);
    assert(amounts_.covers(need));
    amounts_ -= need;
    return {need, {}};
  }
  /// Takes just these amounts of just these GPUs. Asserts that they are free.
  void take(const Share& share);
  void give(const Share& share) {
    amounts_ += share.resources;
    if (!share.gpus.empty()) give_gpus(share);
  }
  void take_cpu(Amount amount);
  void give_cpu(Amount amount);

  /// What others may count on where `claim` is kept for somebody: never less than nothing. A claim
  /// on GPUs is kept on untouched ones.
  Capacity without(const Resources& claim) const;

 private:
  bool has_gpus(Amount gpu) const;
  Share take_with_gpus(const Resources& need);
  void give_gpus(const Share& share);

  Resources amounts_;
  std::vector<Amount> gpus_;
};

}  // namespace troupe::scheduler
