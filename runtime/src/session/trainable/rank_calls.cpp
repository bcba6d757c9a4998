#include <troupe/detail/rank_calls.hpp>

#include <algorithm>

namespace troupe::detail {
namespace {

constexpr std::chrono::milliseconds kPatience{2'000};  // for the failure that explains the others

/// Says that another rank is to blame.
bool is_consequence(const Failure& failure) { return failure.kind == Failure::Kind::GangBroken; }

}  // namespace

void RankCalls::note(const Failure& failure) {
  if (!failure_) blame_at_ = std::chrono::steady_clock::now() + kPatience;
  if (!failure_ || (is_consequence(*failure_) && !is_consequence(failure))) failure_ = failure;
}

/// Leaves those that are under way.
void RankCalls::sift() {
  std::erase_if(calls_, [this](const ObjectPtr& call) {
    if (!is_ready(*call)) return false;
    if (const auto failure = failure_of(*call)) note(*failure);
    return true;
  });
}

bool RankCalls::have_ended() {
  sift();
  return calls_.empty();
}

void RankCalls::look() {
  sift();
  if (!failure_) return;
  const bool is_known = !is_consequence(*failure_) || calls_.empty();
  if (is_known || std::chrono::steady_clock::now() >= blame_at_) raise(*failure_);
}

void RankCalls::collect(std::vector<ObjectPtr>& objects) const {
  objects.insert(objects.end(), calls_.begin(), calls_.end());
}

void wait_for_any(const std::vector<ObjectPtr>& objects, std::optional<RankCalls::TimePoint> until,
                  CpuMeanwhile cpu) {
  using std::chrono::milliseconds;
  std::optional<milliseconds> left;
  if (until) left = std::chrono::ceil<milliseconds>(*until - std::chrono::steady_clock::now());
  if (!left || left->count() > 0) wait_objects(objects, 1, left, cpu);
}

}  // namespace troupe::detail
