#include "prepared/joined_step.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "collective/gather_all.hpp"

namespace troupe::train {
namespace {

void check_same_step(const std::vector<JoinedStep>& ranks) {
  const auto& first = ranks.front();
  const auto other = std::ranges::find_if(ranks, [&](const JoinedStep& each) {
    return each.loop != first.loop || each.step != first.step;
  });
  if (other == ranks.end()) return;
  throw std::logic_error(fmt::format(
      "rank 0 begins step {} of loop {} of ctx.join(), and rank {} step {} of loop {}: all ranks "
      "leave such a loop after the same step",
      first.step + 1, first.loop + 1, other - ranks.begin(), other->step + 1, other->loop + 1));
}

std::optional<int> first_that_brings(Brings what, const std::vector<JoinedStep>& ranks) {
  const auto found = std::ranges::find(ranks, what, &JoinedStep::brings);
  if (found == ranks.end()) return std::nullopt;
  return static_cast<int>(found - ranks.begin());
}

}  // namespace

std::optional<BatchShare> begin_joined_step(Communicator& control, const JoinedStep& own) {
  const auto ranks = gather_all(control, own);
  check_same_step(ranks);
  const auto first = first_that_brings(Brings::Batch, ranks);
  if (!first) return std::nullopt;
  if (const auto without = first_that_brings(Brings::Nothing, ranks)) {
    throw std::invalid_argument(fmt::format(
        "rank {} has no batch at all in a loop of ctx.join(), and rank {} has one: a rank whose "
        "batches have ended goes through its last one again, so give each rank one batch at least",
        *without, *first));
  }
  return BatchShare{.counts = own.brings == Brings::Batch, .first = *first};
}

}  // namespace troupe::train
