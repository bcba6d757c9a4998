#include "zero/gathering/use_order.hpp"

namespace troupe::train {
namespace {

// Layers that begin in one bucket and end in another use both in turns, which are here then.
constexpr int kFar = 8;

}  // namespace

void UseOrder::note(std::int64_t used) {
  if (used == last_.second) return;
  if (followers_.size() >= kMost) followers_.clear();
  followers_[last_] = used;
  last_ = {last_.second, used};
}

void UseOrder::begin_anew() { last_ = {kNone, kNone}; }

std::optional<std::int64_t> UseOrder::next(
    const std::function<bool(std::int64_t)>& is_wanted) const {
  auto at = last_;
  for (int i = 0; i < kFar; ++i) {
    const auto found = followers_.find(at);
    if (found == followers_.end()) return std::nullopt;
    if (is_wanted(found->second)) return found->second;
    at = {at.second, found->second};
  }
  return std::nullopt;
}

}  // namespace troupe::train
