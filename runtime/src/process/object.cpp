#include "process/object.hpp"

#include <utility>

#include "process/doorbell.hpp"

namespace troupe::detail {

ObjectPtr Object::pending(std::uint64_t id) { return std::make_shared<Object>(id, nullptr, nullptr); }

ObjectPtr Object::with_value(std::uint64_t id, Payload value) {
  auto object = std::make_shared<Object>(id, nullptr, nullptr);
  object->outcome_ = std::move(value);
  object->ready_.store(true, std::memory_order_release);
  return object;
}

ObjectPtr Object::borrowed(std::uint64_t id, process::AddressPtr owner, process::ReleaseBorrowed release) {
  return std::make_shared<Object>(id, std::move(owner), release);
}

Object::~Object() {
  if (owner_ && release_) release_(owner_, id_);
}

void Object::complete(process::Outcome outcome) {
  if (ready()) return;
  outcome_ = std::move(outcome);
  on_cancel = nullptr;
  ready_.store(true, std::memory_order_release);
  process::doorbell().ring();
  for (auto& then : std::exchange(waiting_, {})) then();
}

void Object::when_ready(std::function<void()> then) {
  if (ready()) return then();
  waiting_.push_back(std::move(then));
}

}  // namespace troupe::detail
