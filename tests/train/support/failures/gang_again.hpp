#pragma once

#include <cstdint>
#include <string>

#include <troupe/detail/trainable/part_of_gang.hpp>

namespace troupe::testing {

/// The ranks of a gang as another gang, whose rendezvous is empty: for the next of many contexts in
/// the same processes, each of which makes communicators of the same names.
class GangAgain final : public detail::PartOfGang {
 public:
  /// `number`: another one each time, the same on all ranks.
  GangAgain(GangContext& whole, std::uint64_t number)
      : PartOfGang(whole, "again " + std::to_string(number) + " "), id_(whole.id() + number) {}

  std::uint64_t id() const override { return id_; }

 private:
  const std::uint64_t id_;
};

}  // namespace troupe::testing
