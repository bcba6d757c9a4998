#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace troupe::detail {

/// Who is to be told that a gang breaks: what is behind GangContext::on_broken. Any thread.
class BreakListeners {
 public:
  /// As GangContext::on_broken.
  std::shared_ptr<void> add(std::function<void()> then);
  /// The gang is broken, which its context says already. Once; calls all that are registered.
  void notify();

 private:
  struct Table {
    std::mutex mutex;  ///< guards what follows, and is held while a listener runs
    bool broken = false;
    std::uint64_t last = 0;
    std::map<std::uint64_t, std::function<void()>> listeners;
  };
  struct Registration;

  const std::shared_ptr<Table> table_ = std::make_shared<Table>();  // shared with the registrations
};

}  // namespace troupe::detail
