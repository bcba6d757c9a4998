#include "tables/free_index.hpp"

namespace troupe::scheduler {

void FreeIndex::update(NodeId node, const Resources& amounts) {
  auto [known, is_new] = known_.try_emplace(node);
  if (is_new) everyone_.emplace(Amount{}, node);
  auto& before = known->second;
  for (const auto& [name, amount] : before.entries()) {
    const auto now = amounts.of(name);
    if (now == amount) continue;
    now.is_zero() ? leave(name, amount, node) : move(name, amount, now, node);
  }
  for (const auto& [name, amount] : amounts.entries()) {
    if (before.of(name).is_zero()) enter(name, amount, node);
  }
  before = amounts;
}

void FreeIndex::remove(NodeId node) {
  update(node, {});
  everyone_.erase({Amount{}, node});
  known_.erase(node);
}

std::pair<const FreeIndex::Order*, Amount> FreeIndex::scarcest(const Resources& need) const {
  std::pair<const Order*, Amount> best{&everyone_, Amount{}};
  for (const auto& [name, amount] : need.entries()) {
    const auto order = by_name_.find(name);
    if (order == by_name_.end()) return {nullptr, {}};
    if (best.first == &everyone_ || order->second.size() < best.first->size())
      best = {&order->second, amount};
  }
  return best;
}

void FreeIndex::enter(std::string_view name, Amount amount, NodeId node) {
  auto order = by_name_.find(name);
  if (order == by_name_.end()) order = by_name_.try_emplace(std::string{name}).first;
  order->second.emplace(amount, node);
}

/// With the entry that is there: what is free changes with every lease.
void FreeIndex::move(std::string_view name, Amount from, Amount to, NodeId node) {
  auto& order = by_name_.find(name)->second;
  auto entry = order.extract({from, node});
  entry.value().first = to;
  order.insert(std::move(entry));
}

void FreeIndex::leave(std::string_view name, Amount amount, NodeId node) {
  const auto order = by_name_.find(name);
  order->second.erase({amount, node});
  if (order->second.empty()) by_name_.erase(order);
}

}  // namespace troupe::scheduler
