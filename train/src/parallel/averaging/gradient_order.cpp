#include "parallel/averaging/gradient_order.hpp"

#include <span>

namespace troupe::train {

std::vector<std::int64_t> GradientOrder::agree(Communicator& control) const {
  auto order = come_;
  std::vector<bool> has_come(parameters_);
  for (const auto parameter : come_) has_come[static_cast<std::size_t>(parameter)] = true;
  for (auto parameter = parameters_; parameter-- > 0;) {
    if (!has_come[parameter]) order.push_back(static_cast<std::int64_t>(parameter));
  }
  control.broadcast(std::span(order), 0);
  return order;
}

}  // namespace troupe::train
