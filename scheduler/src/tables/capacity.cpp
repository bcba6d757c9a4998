#include "tables/capacity.hpp"

#include <algorithm>

namespace troupe::scheduler {
namespace {

constexpr auto kWhole = Amount::whole(1);

Amount of_each(const Share& share) {
  return share.gpus.size() == 1 ? share.resources.of(kGpu) : kWhole;
}

std::int64_t rounded_up(Amount amount) {
  return (amount.ticks() + Amount::kPerUnit - 1) / Amount::kPerUnit;
}

/// Of a fraction, the fullest GPU that has room for it; end if none has.
auto fullest_with(auto& gpus, Amount fraction) {
  auto best = gpus.end();
  for (auto gpu = gpus.begin(); gpu != gpus.end(); ++gpu) {
    if (*gpu >= fraction && (best == gpus.end() || *gpu < *best)) best = gpu;
  }
  return best;
}

std::size_t gpu_slots(const std::vector<Amount>& gpus, Amount each) {
  if (each >= kWhole)
    return static_cast<std::size_t>(std::ranges::count(gpus, kWhole) / rounded_up(each));
  std::int64_t slots = 0;
  for (auto free : gpus) slots += free / each;
  return static_cast<std::size_t>(slots);
}

}  // namespace

Capacity::Capacity(Resources total, std::uint32_t gpus)
    : amounts_{std::move(total)}, gpus_(gpus, kWhole) {
  amounts_.set(kGpu, Amount::whole(gpus));
}

bool Capacity::has_gpus(Amount gpu) const { return gpu_slots(gpus_, gpu) > 0; }

std::size_t Capacity::slots(const Resources& need, std::size_t limit) const {
  const auto slots = amounts_.count(need, limit);
  const auto gpu = need.of(kGpu);
  return gpu.is_zero() ? slots : std::min(slots, gpu_slots(gpus_, gpu));
}

Share Capacity::take_with_gpus(const Resources& need) {
  assert(fits(need));
  Share share{need, {}};
  const auto gpu = need.of(kGpu);
  if (gpu >= kWhole) {
    for (std::size_t i = 0;
         i < gpus_.size() && share.gpus.size() < static_cast<std::size_t>(rounded_up(gpu)); ++i) {
      if (gpus_[i] == kWhole) share.gpus.push_back(static_cast<GpuIndex>(i));
    }
  } else {
    share.gpus.push_back(static_cast<GpuIndex>(fullest_with(gpus_, gpu) - gpus_.begin()));
  }
  take(share);
  return share;
}

void Capacity::take(const Share& share) {
  amounts_ -= share.resources;
  for (auto gpu : share.gpus) gpus_[gpu] = gpus_[gpu] - of_each(share);
}

void Capacity::give_gpus(const Share& share) {
  for (auto gpu : share.gpus) gpus_[gpu] = gpus_[gpu] + of_each(share);
}

void Capacity::take_cpu(Amount amount) { amounts_.set(kCpu, amounts_.of(kCpu) - amount); }

void Capacity::give_cpu(Amount amount) { amounts_.set(kCpu, amounts_.of(kCpu) + amount); }

Capacity Capacity::without(const Resources& claim) const {
  Capacity left = *this;
  left.amounts_ = amounts_.without(claim);
  auto kept = rounded_up(claim.of(kGpu));
  for (auto gpu = left.gpus_.rbegin(); gpu != left.gpus_.rend() && kept > 0; ++gpu) {
    if (*gpu != kWhole) continue;
    *gpu = Amount{};
    --kept;
  }
  Amount gpus;
  for (auto gpu : left.gpus_) gpus = gpus + gpu;
  left.amounts_.set(kGpu, gpus);
  return left;
}

}  // namespace troupe::scheduler
