#include <troupe/detail/break_listeners.hpp>

#include <utility>

namespace troupe::detail {

struct BreakListeners::Registration {
  std::shared_ptr<Table> table;
  std::uint64_t id;
  Registration(std::shared_ptr<Table> of, std::uint64_t number)
      : table(std::move(of)), id(number) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() {
    const std::lock_guard lock(table->mutex);
    table->listeners.erase(id);
  }
};

std::shared_ptr<void> BreakListeners::add(std::function<void()> then) {
  {
    const std::lock_guard lock(table_->mutex);
    if (!table_->broken) {
      const auto id = ++table_->last;
      table_->listeners.emplace(id, std::move(then));
      return std::make_shared<Registration>(table_, id);
    }
  }
  then();
  return nullptr;
}

void BreakListeners::notify() {
  const std::lock_guard lock(table_->mutex);
  table_->broken = true;
  for (const auto& [id, then] : table_->listeners) then();
}

}  // namespace troupe::detail
