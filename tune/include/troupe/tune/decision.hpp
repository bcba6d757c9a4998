#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <troupe/tune/scalar.hpp>

namespace troupe::tune {

using TrialId = std::uint64_t;  ///< 0, 1, 2, ... in the order of first launch

/// The trial continues.
struct GoOn {
  std::string why = {};          ///< a sentence for people; may be empty
  std::optional<int> rung = {};  ///< in which the trial was judged
  /// A notice for the user, shown at once and in the summary; empty: none.
  std::string notice = {};
  friend bool operator==(const GoOn&, const GoOn&) = default;
};
/// The trial is stopped, because it is not worth continuing.
struct Stop {
  std::string why = {};
  std::optional<int> rung = {};
  friend bool operator==(const Stop&, const Stop&) = default;
};
/// The trial has trained for as long as a trial may.
struct Finish {
  std::string why = {};
  friend bool operator==(const Finish&, const Finish&) = default;
};
/// The attempt ends and frees its place. A later attempt continues from the checkpoint of this
/// report when the scheduler says so.
struct Pause {
  std::string why = {};
  std::optional<int> rung = {};
  std::string notice = {};  ///< as of GoOn
  friend bool operator==(const Pause&, const Pause&) = default;
};
/// The attempt ends, and the trial continues from another trial's checkpoint with its own new
/// configuration.
struct Exploit {
  TrialId donor = 0;
  std::string checkpoint = {};
  /// The donor's report that came with the checkpoint, from which the trial's t continues.
  std::int64_t checkpoint_t = 0;
  /// How often the donor itself had taken over another trial by then.
  std::size_t donor_takeovers = 0;
  Configuration config = {};  ///< with which the trial continues
  bool in_turn =
      /// False: in the same step; true: it is paused until the scheduler resumes it, others are
      /// behind.
      false;
  std::string why = {};
  friend bool operator==(const Exploit&, const Exploit&) = default;
};

/// What a scheduler decides about a trial after a report, and why.
using Decision = std::variant<GoOn, Stop, Finish, Pause, Exploit>;

const std::string& why_of(const Decision& decision);
std::optional<int> rung_of(const Decision& decision);
/// Empty where there is none.
const std::string& notice_of(const Decision& decision);
/// "continue", "stop", "finish", "pause" or "exploit".
std::string_view name_of(const Decision& decision);

}  // namespace troupe::tune
