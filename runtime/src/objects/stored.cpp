#include "objects/stored.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "objects/blocking.hpp"
#include "objects/store_link.hpp"

namespace troupe::detail {

StoredValue::~StoredValue() {
  if (!own_ || is_stale()) return;
  if (auto* process = runtime::ProcessContext::maybe()) process->store().free(place_);
}

/// -> what is completed once it is here, or will not be; nullptr: it is here.
ObjectPtr StoredValue::begin() {
  ObjectPtr coming;
  {
    const std::lock_guard lock(mutex_);
    if (first_ || !view_.expired()) return nullptr;
    if (is_stale()) raise(runtime::of_an_ended_session());
    ++waiting_;
    if (coming_) return coming_;
    coming = coming_ = Object::pending(0);
  }
  runtime::ProcessContext::current().store().view(
      place_, [self = shared_from_this()](auto view) { self->arrived(view); });
  return coming;
}

void StoredValue::arrived(std::variant<runtime::FetchedView, store::Refusal> seen) {
  const std::lock_guard lock(mutex_);
  const auto coming = std::exchange(coming_, nullptr);
  if (const auto* refusal = std::get_if<store::Refusal>(&seen))
    return coming->complete(runtime::failure_of(*refusal));
  const auto& here = std::get<runtime::FetchedView>(seen);
  bytes_ = here.bytes;
  if (waiting_ > 0) first_ = here.keep;
  view_ = here.keep;
  coming->complete(Payload{});
}

void StoredValue::fetch(runtime::Deadline deadline) {
  if (wait_for(deadline)) return;
  raise({.kind = Failure::Kind::TimedOut,
         .message = fmt::format("a value of {} was not brought here in time",
                                store::format_bytes(place_.bytes))});
}

bool StoredValue::fetch_within(std::chrono::milliseconds time) {
  return wait_for(runtime::deadline_after(time));
}

void StoredValue::give_back() {
  const std::lock_guard lock(mutex_);
  first_ = nullptr;
}

bool StoredValue::wait_for(runtime::Deadline deadline) {
  const auto coming = begin();
  if (!coming) return true;
  runtime::wait_giving_cpu_back(
      runtime::ProcessContext::current(), [&] { return coming->ready(); }, deadline);
  {
    const std::lock_guard lock(mutex_);
    --waiting_;
    if (coming_ == coming) return false;
  }
  if (const auto* failure = std::get_if<Failure>(&coming->outcome())) raise(*failure);
  return true;
}

Block StoredValue::open() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      auto view = view_.lock();
      first_ = nullptr;
      if (view) {
        return {{reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}, std::move(view)};
      }
    }
    fetch(std::nullopt);
  }
}

void fetch_together(std::span<StoredValue* const> values) {
  if (values.empty()) return;
  if (values.size() == 1) return values.front()->fetch(std::nullopt);
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<int> patience(50, 250);  // milliseconds
  for (StoredValue* alone = values.front();;) {
    alone->fetch(std::nullopt);
    const auto late = std::ranges::find_if(values, [&](StoredValue* value) {
      return value != alone && !value->fetch_within(std::chrono::milliseconds(patience(random)));
    });
    if (late == values.end()) return;
    for (auto* value : values) value->give_back();
    alone = *late;
  }
}

Block open_stored(const Payload& payload) { return payload.stored->open(); }

}  // namespace troupe::detail
