#include "objects/object.hpp"

#include <utility>

#include "ids/session.hpp"
#include "objects/doorbell.hpp"
#include "objects/process_context.hpp"

namespace troupe::detail {

ObjectPtr Object::pending(std::uint64_t id) {
  return std::make_shared<Object>(id, nullptr, nullptr);
}

ObjectPtr Object::with_value(std::uint64_t id, Payload value) {
  auto object = std::make_shared<Object>(id, nullptr, nullptr);
  object->outcome_ = std::move(value);
  object->state_.store(kClaimed | kReady, std::memory_order_release);
  return object;
}

ObjectPtr Object::borrowed(std::uint64_t id, runtime::AddressPtr owner,
                           runtime::ReleaseBorrowed release) {
  return std::make_shared<Object>(id, std::move(owner), release, runtime::current_session());
}

bool Object::is_stale() const { return owner_ && session_ != runtime::current_session(); }

Object::~Object() {
  if (owner_ && release_ && !is_stale()) release_(owner_, id_);
}

void Object::complete(runtime::Outcome outcome) {
  if ((state_.fetch_or(kClaimed, std::memory_order_relaxed) & kClaimed) != 0) return;
  outcome_ = std::move(outcome);
  const bool failed = std::holds_alternative<Failure>(outcome_);
  const auto before = state_.fetch_or(kReady, std::memory_order_seq_cst);
  if (failed) failures_.fetch_add(1, std::memory_order_release);
  runtime::doorbell().ring();
  if ((before & kHooks) == 0) return;
  auto* process = runtime::ProcessContext::maybe();
  if (!process || process->is_on_loop()) return run_hooks();
  process->on_loop([self = shared_from_this()] { self->run_hooks(); });
}

void Object::note_own_call() {
  state_.fetch_or(kOwnCall, std::memory_order_seq_cst);
  runtime::doorbell().ring();  // for who waits for it already
}

Object::Hooks& Object::hooks() {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

void Object::run_hooks() {
  if (!hooks_) return;
  hooks_->on_cancel = nullptr;
  for (auto& then : std::exchange(hooks_->waiting, {})) then();
}

void Object::when_ready(std::function<void()> then) {
  if (ready()) return then();
  hooks().waiting.push_back(std::move(then));
  // Completed in between: whoever did that saw no hooks.
  if ((state_.fetch_or(kHooks, std::memory_order_seq_cst) & (kReady | kHooks)) == kReady)
    run_hooks();
}

bool Object::start_fetch() { return !std::exchange(hooks().fetching, true); }

void Object::set_on_cancel(std::function<void()> cancel) {
  if (ready()) return;
  hooks().on_cancel = std::move(cancel);
  if ((state_.fetch_or(kHooks, std::memory_order_seq_cst) & (kReady | kHooks)) == kReady)
    run_hooks();
}

std::function<void()> Object::take_on_cancel() {
  return hooks_ ? std::exchange(hooks_->on_cancel, nullptr) : nullptr;
}

}  // namespace troupe::detail
