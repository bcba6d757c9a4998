#include "policies/closest_node.hpp"

#include <fmt/format.h>

namespace troupe::scheduler {
namespace {

/// What keeps the need off the node. Where the sums suffice, what is left is that no GPU has enough
/// by itself.
Resources lacking(const Resources& need, const Capacity& room) {
  auto lack = room.amounts().missing(need);
  if (lack.empty() && !room.fits(need)) lack.set(kGpu, need.of(kGpu));
  return lack;
}

double distance(const Resources& lack, const Resources& need) {
  double sum = 0;
  for (const auto& [name, amount] : lack.entries())
    sum += 1 + amount.units() / need.of(name).units();
  return sum;
}

/// What the node has of the names that count.
Resources part_of(const Resources& amounts, const Resources& names, std::string& zeros) {
  Resources part;
  for (const auto& [name, amount] : names.entries()) {
    part.set(name, amounts.of(name));
    if (amounts.of(name).is_zero()) zeros += fmt::format("{}{} 0", zeros.empty() ? "" : ", ", name);
  }
  return part;
}

std::string having(const Capacity& room, const Resources& lack) {
  std::string zeros;
  const auto part = part_of(room.amounts(), lack, zeros);
  if (part.empty()) return zeros;
  return zeros.empty() ? to_string(part) : fmt::format("{}, {}", to_string(part), zeros);
}

std::string closest(const Ask& ask, std::span<const Candidate> candidates,
                    const Capacity* Candidate::*which) {
  const auto& need = ask.each.resources;
  const Candidate* best = nullptr;
  Resources best_lack;
  for (const auto& candidate : candidates) {
    auto lack = lacking(need, *(candidate.*which));
    if (best == nullptr || distance(lack, need) < distance(best_lack, need)) {
      best = &candidate;
      best_lack = std::move(lack);
    }
  }
  if (best == nullptr) return "there is no node";
  if (best_lack.empty()) return fmt::format("the closest is {}, which has room", to_string(*best));
  if ((best->*which)->amounts().covers(need)) {
    return fmt::format("the closest is {} with {}, in parts of several GPUs", to_string(*best),
                       having(*(best->*which), best_lack));
  }
  return fmt::format("the closest is {} with {}: lacks {}", to_string(*best),
                     having(*(best->*which), best_lack), to_string(best_lack));
}

}  // namespace

std::string closest_now(const Ask& ask, std::span<const Candidate> candidates) {
  return closest(ask, candidates, &Candidate::free);
}

std::string closest_idle(const Ask& ask, std::span<const Candidate> candidates) {
  return closest(ask, candidates, &Candidate::idle);
}

}  // namespace troupe::scheduler
