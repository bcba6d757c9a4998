#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/gang_context.hpp>

namespace troupe::train {

/// Who has come to a call, over all nodes: a rank that has waited for some time says in the
/// rendezvous that it is there, and one that gives up looks who did not. Costs a quick call
/// nothing. One per communicator, used by its calling thread.
///
/// A rank that came shortly before the other's deadline has not said so yet, and is taken for
/// missing: see kLongestSilence. Where the process of rank 0, which keeps the rendezvous, does not
/// answer, these calls take as long as the rendezvous lets them.
class RollCall {
 public:
  /// How long a rank waits before it says that it is there: an eighth of the timeout, at most this.
  static constexpr std::chrono::milliseconds kLongestSilence{10'000};

  RollCall(GangContext& gang, std::string name) : gang_(gang), name_(std::move(name)) {}

  /// Once for each call. What goes wrong is left to the wait that goes on.
  void answer(std::uint64_t call);
  /// Whether this rank's own answer can be read back: else rank 0 does not answer, or is_full().
  bool hears(std::uint64_t call);
  /// Too many calls were answered for the rendezvous to hold more: answer() does nothing any more.
  bool is_full() const;
  /// True for the first rank that asks for this call, and where that cannot be told.
  bool claim(std::uint64_t call);
  /// The ranks that have not answered. Takes up to some seconds where many are missing.
  std::vector<int> absent(std::uint64_t call);

  /// The end of the communicator, for ranks of other nodes, which see only connections that close,
  /// and for those that are still making it. The first reason stays.
  void tell_end(const std::string& why);
  /// How long it is waited for where it is likely.
  static constexpr std::chrono::milliseconds kForEnd{300};
  /// Waits a moment for it. Throws GangBroken if the gang is.
  std::optional<std::string> told_end(std::chrono::milliseconds wait);

 private:
  std::string key(std::uint64_t call, int rank) const;

  GangContext& gang_;
  const std::string name_;
  int answers_ = 0;
};

}  // namespace troupe::train
