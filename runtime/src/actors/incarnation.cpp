#include "actors/incarnation.hpp"

#include <cassert>

namespace troupe::runtime {

Incarnation::Stage* Incarnation::find(Number call) {
  if (call < first_ || call - first_ >= calls_.size()) return nullptr;
  return &calls_[call - first_];
}

bool Incarnation::is_queued(Number call) {
  const auto* stage = find(call);
  return stage && *stage != Stage::Over;
}

void Incarnation::end(Number call, const Failure& why, Effects& effects) {
  *find(call) = Stage::Over;
  --queued_;
  effects.emplace_back(End{call, why});
}

void Incarnation::send_what_may_leave(Effects& effects) {
  while (!calls_.empty() &&
         (calls_.front() == Stage::Over || (placed_ && calls_.front() == Stage::Resolved))) {
    if (calls_.front() == Stage::Resolved) {
      effects.emplace_back(Send{first_});
      --queued_;
    }
    calls_.pop_front();
    ++first_;
  }
}

Incarnation::Effects Incarnation::on_call(Number call) {
  assert(call == first_ + calls_.size());
  Effects effects;
  calls_.push_back(Stage::Waiting);
  ++queued_;
  if (death_) end(call, *death_, effects);
  if (death_) send_what_may_leave(effects);
  return effects;
}

Incarnation::Effects Incarnation::on_resolved(Number call) {
  Effects effects;
  if (!is_queued(call)) return effects;
  *find(call) = Stage::Resolved;
  send_what_may_leave(effects);
  return effects;
}

Incarnation::Effects Incarnation::on_argument_failed(Number call, const Failure& why,
                                                     bool is_constructor) {
  Effects effects;
  if (!is_queued(call)) return effects;
  if (is_constructor) return on_death(why);
  end(call, why, effects);
  send_what_may_leave(effects);
  return effects;
}

Incarnation::Effects Incarnation::on_cancelled(Number call, const Failure& why) {
  Effects effects;
  if (!is_queued(call)) return effects;
  end(call, why, effects);
  send_what_may_leave(effects);
  return effects;
}

Incarnation::Effects Incarnation::on_placed() {
  Effects effects;
  if (death_) return effects;
  placed_ = true;
  send_what_may_leave(effects);
  return effects;
}

Incarnation::Effects Incarnation::on_death(const Failure& why) {
  Effects effects;
  if (death_) return effects;
  death_ = why;
  const auto last = first_ + calls_.size();
  for (auto call = first_; call < last; ++call) {
    if (is_queued(call)) end(call, why, effects);
  }
  send_what_may_leave(effects);
  assert(queued_ == 0 && calls_.empty());
  return effects;
}

}  // namespace troupe::runtime
