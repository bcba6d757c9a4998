#include <troupe/tune/lineage.hpp>

#include <catch2/catch.hpp>

#include <troupe/tune/trial.hpp>

namespace lineage_test {

using namespace troupe::tune;

namespace {

Configuration lr(double value) { return {{"lr", value}}; }

/// Trial 2 took over trial 1 at t=8, which had taken over trial 0 at t=4; trial 1 then took over
/// trial 2.
std::vector<Trial> family() {
  std::vector<Trial> trials(3);
  for (TrialId id = 0; id < 3; ++id) trials[id].id = id;
  trials[0].config = lr(0.1);
  trials[1].takeovers = {
      {.t = 5, .donor = 0, .checkpoint_t = 4, .before = lr(0.5), .after = lr(0.12)},
      {.t = 12,
       .donor = 2,
       .checkpoint_t = 12,
       .donor_takeovers = 1,
       .before = lr(0.12),
       .after = lr(0.2)}};
  trials[1].config = lr(0.2);
  trials[2].takeovers = {{.t = 8,
                          .donor = 1,
                          .checkpoint_t = 8,
                          .donor_takeovers = 1,
                          .before = lr(0.9),
                          .after = lr(0.15)}};
  trials[2].config = lr(0.15);
  return trials;
}

}  // namespace

TEST_CASE(
    "a schedule goes from the first step of the first donor to the trial's last configuration",
    "[tune][lineage]") {
  const auto trials = family();
  using Segments = std::vector<Segment>;
  CHECK(schedule_of(trials, 0) == Segments{{0, 0, lr(0.1)}});
  CHECK(schedule_of(trials, 2) == Segments{{0, 0, lr(0.1)}, {4, 1, lr(0.12)}, {8, 2, lr(0.15)}});
  CHECK(schedule_of(trials, 1) ==
        Segments{{0, 0, lr(0.1)}, {4, 1, lr(0.12)}, {8, 2, lr(0.15)}, {12, 1, lr(0.2)}});
  CHECK(schedule_of(trials, 1, 0) == Segments{{0, 1, lr(0.5)}});
  CHECK(schedule_of(trials, 1, 1) == Segments{{0, 0, lr(0.1)}, {4, 1, lr(0.12)}});
}

TEST_CASE("a donor that had not trained since its own takeover has no part in the schedule",
          "[tune][lineage]") {
  auto trials = family();
  // Of trial 0's checkpoint, which trial 1 had just taken over.
  trials[2].takeovers[0].checkpoint_t = 4;
  CHECK(schedule_of(trials, 2) == std::vector<Segment>{{0, 0, lr(0.1)}, {4, 2, lr(0.15)}});
}

TEST_CASE("a takeover is told by what changed and what was kept", "[tune][lineage]") {
  const Configuration donor{{"lr", 0.031}, {"momentum", 0.9}};
  Takeover takeover{.t = 8, .donor = 2, .checkpoint_t = 8, .donor_config = donor};
  takeover.after = {{"lr", 0.0372}, {"momentum", 0.9}};
  CHECK(describe(takeover, 5) ==
        "trial 5 takes over trial 2 at t=8: lr 0.031 -> 0.0372, momentum kept");
  takeover.checkpoint_t = 12;
  CHECK(describe(takeover, 5) ==
        "trial 5 takes over trial 2 at t=8 (from its t=12): lr 0.031 -> 0.0372, momentum kept");
  takeover.after = donor;
  CHECK(describe_change(donor, takeover.after) == "nothing changed");
}

}  // namespace lineage_test
