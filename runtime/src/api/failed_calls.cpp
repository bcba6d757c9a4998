#include <troupe/detail/failed_calls.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace troupe::detail {
namespace {

struct Listeners {
  std::mutex mutex;  ///< guards what follows, and is held while a listener runs
  std::uint64_t last = 0;
  std::map<std::uint64_t, std::function<void(const Failure&)>> all;
};

Listeners& listeners() {
  static auto& of_this_process = *new Listeners;  // for whatever ends after it would
  return of_this_process;
}

struct Registration {
  const std::uint64_t id;
  explicit Registration(std::uint64_t number) : id(number) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() {
    const std::lock_guard lock(listeners().mutex);
    listeners().all.erase(id);
  }
};

}  // namespace

std::shared_ptr<void> on_failed_call(std::function<void(const Failure& why)> then) {
  const std::lock_guard lock(listeners().mutex);
  const auto id = ++listeners().last;
  listeners().all.emplace(id, std::move(then));
  return std::make_shared<Registration>(id);
}

void tell_failed_call(const Failure& why) {
  const std::lock_guard lock(listeners().mutex);
  for (const auto& [id, then] : listeners().all) then(why);
}

}  // namespace troupe::detail
