#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <troupe/detail/trainable/part_of_gang.hpp>

namespace troupe::detail {

/// The gang as one of several runs that follow one another in it sees it: the same ranks, with a
/// part of the rendezvous for this run alone. Its owner is the run.
class RunGang final : public PartOfGang {
 public:
  /// `run`: the same on every rank, and another for each run of the gang. Rank 0 forgets what the
  /// run before kept: every rank has left that one before any begins this one.
  RunGang(GangContext& whole, std::uint32_t run) : PartOfGang(whole, prefix_of(run)) {
    if (rank() == 0 && size() > 1) whole.rendezvous().forget(prefix_of(run - 1));
  }

 private:
  static std::string prefix_of(std::uint32_t run) { return fmt::format("run {}/", run); }
};

}  // namespace troupe::detail
