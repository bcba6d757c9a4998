#include "run/checkpoints/tidying.hpp"

#include <chrono>

#include <fmt/format.h>

#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

constexpr Seconds kBetweenRemovals{0.5};

}  // namespace

void Tidying::tidy_here(CheckpointKeeper& keeper, const Experiment& experiment) {
  const auto copies = spare_copies_ ? spare_copies_() : std::vector<std::string>();
  for (const auto& copy : copies) keeper.see_spare_copy(copy);
  keeper.tidy(experiment);
}

void Tidying::tick(CheckpointKeeper& keeper, const Experiment& experiment, Seconds now) {
  tidy_here(keeper, experiment);
  if (now - told_nodes_ < kBetweenRemovals && now >= told_nodes_) return;
  told_nodes_ = now;
  keeper.tidy_nodes(experiment, *remover_);
}

void Tidying::finish(CheckpointKeeper& keeper, const Experiment& experiment,
                     const std::function<void(const std::string&)>& say, Patience patience) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  tidy_here(keeper, experiment);
  const auto wait_until = [&](Clock::time_point deadline) {
    do {
      keeper.tidy_nodes(experiment, *remover_);
    } while (remover_->wait_for_one(deadline));
  };
  wait_until(begin + patience.silence);
  if (Clock::now() < begin + patience.silence) return;
  say(fmt::format(
      "nodes that do not share the run's folder delete checkpoints there: the run waits "
      "for it for {} in all at most",
      short_time(patience.limit)));
  wait_until(begin + patience.limit);
}

}  // namespace troupe::tune::detail
