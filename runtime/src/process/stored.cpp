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

void StoredValue::begin() {
  {
    const std::lock_guard lock(mutex_);
    if (coming_ || first_ || !view_.expired()) return;
    coming_ = Object::pending(0);
  }
  process::Process::current().store().view(place_, [self = shared_from_this()](auto view) { self->arrived(view); });
}

void StoredValue::arrived(std::variant<process::Seen, store::Refusal> seen) {
  ObjectPtr coming;
  {
    const std::lock_guard lock(mutex_);
    coming = coming_;
    if (auto* here = std::get_if<process::Seen>(&seen)) {
      bytes_ = here->bytes;
      first_ = here->keep;
      view_ = here->keep;
      coming_ = nullptr;
    }
  }
  if (const auto* refusal = std::get_if<store::Refusal>(&seen)) {
    coming->complete(process::failure_of(*refusal));
  } else {
    coming->complete(Payload{});
  }
}

void StoredValue::bring(process::Deadline deadline) {
  if (is_stale() && view_.expired()) raise(process::of_an_ended_session());
  begin();
  ObjectPtr coming;
  {
    const std::lock_guard lock(mutex_);
    coming = coming_;
  }
  if (!coming) return;
  auto& process = process::Process::current();
  const bool came = process::wait_giving_cpu_back(
      process, [&] { return coming->ready(); }, deadline);
  if (!came) {
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("a value of {} was not brought here in time", store::format_bytes(place_.bytes))});
  }
  const auto* failure = std::get_if<Failure>(&coming->outcome());
  if (!failure) return;
  {
    const std::lock_guard lock(mutex_);
    if (coming_ == coming) coming_ = nullptr;  // the next one tries again
  }
  raise(*failure);
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
