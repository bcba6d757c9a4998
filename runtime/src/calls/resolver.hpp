#pragma once

#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "calls/peers/peers.hpp"

namespace troupe::runtime {

/// Brings the values of refs to where they are needed. Belongs to the loop.
class Resolver {
 public:
  using Resolved = std::variant<std::vector<detail::Argument>, Failure>;

  explicit Resolver(Peers& peers) : peers_(peers) {}

  /// Starts to bring the value of a borrowed object here, unless that is under way. No effect on
  /// own objects.
  void fetch(const detail::ObjectPtr& object);

  /// `then` is called once the value of each argument is here (value_of), or with the first failure
  /// (by position).
  void resolve(std::vector<detail::Argument> arguments, std::function<void(Resolved)> then);

  /// Any thread: true if value_of may be asked of each of them.
  static bool is_here(std::span<const detail::Argument> arguments);
  static const detail::Payload& value_of(const detail::Argument& argument);

 private:
  Peers& peers_;
};

}  // namespace troupe::runtime
