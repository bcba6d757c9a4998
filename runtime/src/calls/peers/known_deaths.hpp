#pragma once

#include <cstddef>
#include <deque>
#include <unordered_map>
#include <utility>

#include <troupe/errors.hpp>

#include "ids/address.hpp"

namespace troupe::runtime {

/// How other processes died, of the last kMost of them. A value.
class KnownDeaths {
 public:
  static constexpr std::size_t kMost = 10'000;

  void put(ProcessId process, Failure how) {
    if (!deaths_.try_emplace(process, std::move(how)).second) return;
    order_.push_back(process);
    if (order_.size() <= kMost) return;
    deaths_.erase(order_.front());
    order_.pop_front();
  }
  /// nullptr: it is not known to have died.
  const Failure* find(ProcessId process) const {
    const auto found = deaths_.find(process);
    return found == deaths_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<ProcessId, Failure> deaths_;
  std::deque<ProcessId> order_;
};

}  // namespace troupe::runtime
