#include "process/stored.hpp"

#include <utility>

#include <fmt/format.h>

#include "process/blocking.hpp"
#include "process/store_link.hpp"

namespace troupe::detail {

StoredValue::~StoredValue() {
  if (!own_ || is_stale()) return;
  if (auto* process = process::Process::maybe()) process->store().free(place_);
}

/// -> what is completed once it is here, or will not be; nullptr: it is here.
ObjectPtr StoredValue::begin() {
  ObjectPtr coming;
  {
    const std::lock_guard lock(mutex_);
    if (first_ || !view_.expired()) return nullptr;
    if (is_stale()) raise(process::of_an_ended_session());
    ++waiting_;
    if (coming_) return coming_;
    coming = coming_ = Object::pending(0);
  }
  process::Process::current().store().view(place_, [self = shared_from_this()](auto view) { self->arrived(view); });
  return coming;
}

void StoredValue::arrived(std::variant<process::Seen, store::Refusal> seen) {
  const std::lock_guard lock(mutex_);
  const auto coming = std::exchange(coming_, nullptr);
  if (const auto* refusal = std::get_if<store::Refusal>(&seen)) return coming->complete(process::failure_of(*refusal));
  const auto& here = std::get<process::Seen>(seen);
  bytes_ = here.bytes;
  if (waiting_ > 0) first_ = here.keep;
  view_ = here.keep;
  coming->complete(Payload{});
}

void StoredValue::bring(process::Deadline deadline) {
  const auto coming = begin();
  if (!coming) return;
  process::wait_giving_cpu_back(
      process::Process::current(), [&] { return coming->ready(); }, deadline);
  {
    const std::lock_guard lock(mutex_);
    --waiting_;
    if (coming_ == coming) {
      raise({.kind = Failure::Kind::TimedOut,
             .message = fmt::format("a value of {} was not brought here in time", store::format_bytes(place_.bytes))});
    }
  }
  if (const auto* failure = std::get_if<Failure>(&coming->outcome())) raise(*failure);
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
    bring(std::nullopt);
  }
}

Block open_stored(const Payload& payload) { return payload.stored->open(); }

}  // namespace troupe::detail
