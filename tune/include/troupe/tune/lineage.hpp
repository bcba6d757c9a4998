#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/tune/decision.hpp>

namespace troupe::tune {

struct Trial;

/// One time that a trial went on from another's checkpoint, or from an earlier one of its own: with
/// another configuration of a schedule, or because the checkpoint of the takeover before is gone. A
/// value.
struct Takeover {
  std::int64_t t = 0;  ///< the trial's report at which it was decided
  TrialId donor = 0;
  std::int64_t checkpoint_t = 0;    ///< the donor's report that the trial went on from
  std::size_t donor_takeovers = 0;  ///< of the donor, by then
  std::string checkpoint = {};
  Configuration donor_config = {};  ///< the donor's, when it was judged
  Configuration before = {};        ///< of the trial
  Configuration after = {};
  std::string why = {};
  /// The trial's last before, to go on from where the donor's is gone.
  std::string own_checkpoint = {};
  std::int64_t own_checkpoint_t = 0;
  friend bool operator==(const Takeover&, const Takeover&) = default;
};

/// A part of a schedule of hyperparameters: after report `after_t`, training ran with `config`, in
/// trial `trial`.
struct Segment {
  std::int64_t after_t = 0;  ///< 0: from the start
  TrialId trial = 0;
  Configuration config = {};
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// The configuration with which `trial` trained after its first `takeovers` takeovers. Throws
/// std::out_of_range.
const Configuration& config_after(const Trial& trial, std::size_t takeovers);

/// The configuration of the attempt that made the trial's best report; of the last one where there
/// is none.
const Configuration& config_of_best(const Trial& trial);

/// The configuration of the attempt that made the trial's last report with all objectives; of the
/// last one where there is none.
const Configuration& config_of_values(const Trial& trial);

/// The configurations that led to what `trial` has after its first `takeovers` takeovers, from its
/// first step through its donors, in the order of training. A donor's part ends where its
/// checkpoint was taken over. Never empty. Cost: O(length).
std::vector<Segment> schedule_of(const std::vector<Trial>& trials, TrialId trial,
                                 std::size_t takeovers);
/// Of all that the trial has taken over.
std::vector<Segment> schedule_of(const std::vector<Trial>& trials, TrialId trial);
/// Of what came before its best report.
std::vector<Segment> schedule_to_best(const std::vector<Trial>& trials, TrialId trial);

/// "after t=4: lr=0.0278, momentum=0.9 (trial 2)".
std::string describe(const Segment& segment);
/// "trial 5 takes over trial 2 at t=8: lr 0.031 -> 0.037, momentum kept": from the donor's
/// configuration to the new one.
std::string describe(const Takeover& takeover, TrialId trial);
/// "lr 0.031 -> 0.037, momentum kept".
std::string describe_change(const Configuration& before, const Configuration& after);

}  // namespace troupe::tune
