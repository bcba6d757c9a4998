#include <algorithm>

#include "cluster.hpp"

namespace troupe::scheduler {
namespace {

// Between ticks, events let time pass too, but not each of a hundred thousand in a second.
constexpr Duration kGrain = std::chrono::milliseconds{50};

}  // namespace

void Cluster::apply(const Event& event, TimePoint now, std::vector<Effect>& effects) {
  now_ = std::max(now_, now);
  effects_ = &effects;
  std::visit([this](const auto& e) { on(e); }, event);
  if (!doomed_.empty()) end_doomed();

  const bool is_tick = std::holds_alternative<Tick>(event);
  const bool time_passes = is_tick || now_ - time_passed_at_ >= kGrain;
  if (time_passes) {
    time_passed_at_ = now_;
    pass_time(is_tick);
    end_doomed();
  }
  for (auto* node : nodes_.touched()) {
    if (node->cpu_is_promised()) serve_waiting_for_cpu(*node);
  }
  // Placing one that had nodes reserved gives the rest of them free, also to those that were passed
  // over before.
  while (queue_.has_loose() || nodes_.has_touched()) place_waiting();
  if (is_tick) recall_for_those_behind();
  if (time_passes) recall_overdue();
  if (is_tick) tell_who_waits();
  effects_ = nullptr;
}

}  // namespace troupe::scheduler
