#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "process/peers.hpp"

namespace troupe::process {

/// Brings the values of refs to where they are needed. Belongs to the loop.
class Resolver {
 public:
  using Resolved = std::variant<std::vector<detail::Payload>, Failure>;

  Resolver(Peers& peers, Exports& exports) : peers_(peers), exports_(exports) {}

  /// Starts to bring the value of a borrowed object here, unless that is under way. No effect on own objects.
  void fetch(const detail::ObjectPtr& object);

  /// Puts values in the place of refs; `then` is called once all are there, or with the first failure (by position).
  void resolve(std::vector<detail::Argument> arguments, std::function<void(Resolved)> then);

 private:
  Peers& peers_;
  Exports& exports_;
};

}  // namespace troupe::process
