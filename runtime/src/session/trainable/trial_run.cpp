#include <troupe/detail/trainable/trial_run.hpp>

#include <algorithm>

namespace troupe::detail {
namespace {

bool has_value(const ObjectPtr& call) { return is_ready(*call) && !failure_of(*call); }

}  // namespace

RunProgress::RunProgress(const TrialRanks& ranks) : ranks_(ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    starts_.push_back(object_of(ranks.start(rank)));
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    others_.push_back(object_of(ranks.finish(rank)));
  for (const auto& call : starts_) calls_.add(call);
  for (const auto& call : others_) calls_.add(call);
  ask(std::nullopt);
}

void RunProgress::ask(std::optional<Verdict> verdict) {
  pending_ = ranks_.next(verdict);
  calls_.add(object_of(pending_));
}

std::optional<TrialEvent> RunProgress::poll() {
  calls_.look();
  if (calls_.failing() || !pending_ || !has_value(object_of(pending_))) return std::nullopt;
  auto event = std::exchange(pending_, {}).get();
  if (event.kind == TrialEvent::Kind::Progress) ask(std::nullopt);
  return event;
}

bool RunProgress::is_over() {
  calls_.look();
  return !calls_.failing() && std::all_of(others_.begin(), others_.end(), has_value);
}

bool RunProgress::wind_up() {
  if (pending_ && is_ready(*object_of(pending_))) {
    const auto last = std::exchange(pending_, {});
    if (has_value(object_of(last))) {
      const auto kind = last.get().kind;
      if (kind == TrialEvent::Kind::Report) ask(Verdict::Stop);
      if (kind == TrialEvent::Kind::Progress) ask(std::nullopt);
    }
  }
  return is_settled();
}

bool RunProgress::begun() const { return std::all_of(starts_.begin(), starts_.end(), has_value); }

}  // namespace troupe::detail
