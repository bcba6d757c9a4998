#include "tables/departed.hpp"

#include <algorithm>

namespace troupe::scheduler {

void Departed::add(const Node& node, TimePoint now) {
  nodes_.push_front({node.id, node.name, node.lasting_labels, node.idle, now});
  if (nodes_.size() > most_) nodes_.pop_back();
}

void Departed::came_back(const Node& node) {
  const auto of_name = [&](const DepartedNode& departed) { return departed.name == node.name; };
  auto found = std::ranges::find_if(nodes_, [&](const DepartedNode& departed) {
    return of_name(departed) && departed.idle.amounts() == node.idle.amounts();
  });
  if (found == nodes_.end()) found = std::ranges::find_if(nodes_, of_name);
  if (found != nodes_.end()) nodes_.erase(found);
}

void Departed::forget_before(TimePoint time) {
  while (!nodes_.empty() && nodes_.back().left < time) nodes_.pop_back();
}

}  // namespace troupe::scheduler
