// Who is told of when trials do not report, and what is said of where they stand.
#include "run/silence.hpp"

#include <fstream>

#include <catch2/catch.hpp>

#include "run/launch/where.hpp"
#include "support/temporary_folder.hpp"

namespace silence_test {

using namespace troupe::tune;
using troupe::detail::RankSign;

namespace {

/// Asks every second, as a search does.
std::vector<TrialId> told(SilenceWatch& watch, int from, int until) {
  std::vector<TrialId> trials;
  for (int now = from; now <= until; ++now) {
    for (const auto& silent : watch.due(Seconds(now))) trials.push_back(silent.trial);
  }
  return trials;
}

}  // namespace

TEST_CASE("while nobody has reported, five minutes are long", "[tune][silence]") {
  SilenceWatch watch;
  watch.began(0, Seconds(0));
  CHECK(told(watch, 1, 299).empty());
  const auto silent = watch.due(Seconds(300));
  REQUIRE(silent.size() == 1);
  CHECK(silent[0].waited == Seconds(300));
  CHECK_FALSE(silent[0].longest);
  CHECK(told(watch, 301, 2000).empty());
}

TEST_CASE("ten times the longest wait is long, and never less than a minute", "[tune][silence]") {
  SilenceWatch watch;
  watch.began(0, Seconds(0));
  watch.began(1, Seconds(0));
  watch.reported(0, Seconds(1));
  CHECK(told(watch, 1, 59).empty());
  CHECK(told(watch, 60, 60) == std::vector<TrialId>{1});
  watch.reported(0, Seconds(60));  // after 59 s
  watch.reported(1, Seconds(60));
  CHECK(told(watch, 61, 60 + 599).empty());  // 1 waited for 60
  CHECK(told(watch, 660, 660) == std::vector<TrialId>{0, 1});
}

TEST_CASE("a limit that is given counts, and who has ended is not told of", "[tune][silence]") {
  SilenceWatch watch(Seconds(3));
  watch.began(0, Seconds(0));
  watch.began(1, Seconds(0));
  watch.over(0);
  CHECK(told(watch, 0, 10) == std::vector<TrialId>{1});
}

TEST_CASE("time in which the search stood still is nobody's silence", "[tune][silence]") {
  SilenceWatch watch(Seconds(30));
  watch.began(0, Seconds(0));
  CHECK(told(watch, 0, 20).empty());
  CHECK(told(watch, 3620, 3629).empty());
  CHECK(told(watch, 3630, 3630) == std::vector<TrialId>{0});
  SilenceWatch other;
  other.began(0, Seconds(0));
  CHECK(told(other, 0, 20).empty());
  other.reported(0, Seconds(3620));  // it took 20 s
  CHECK(told(other, 3621, 3620 + 199).empty());
  CHECK(told(other, 3820, 3820) == std::vector<TrialId>{0});
}

TEST_CASE("of a whole run that hangs the first twenty are told of", "[tune][silence]") {
  SilenceWatch watch(Seconds(1));
  for (TrialId trial = 0; trial < 30; ++trial) watch.began(trial, Seconds(0));
  CHECK(told(watch, 0, 5).size() == SilenceWatch::kMostTold);
}

TEST_CASE("where the ranks of a gang stand is said in their order", "[tune][silence]") {
  const std::vector<Place> places(6, {.node = "w1", .slot = 0});
  const std::vector<RankSign> signs{{.process = 7, .last_line = "epoch 3"},
                                    {.process = 8, .last_line = ""}};
  CHECK(where_it_stands(places, signs, false) ==
        "rank 0 (process 7 on w1) last printed 'epoch 3'; rank 1 (process 8 on w1) has shown no "
        "line here (`troupe logs process 8` has its log); rank 2 (on w1) runs; rank 3 (on w1) "
        "runs; and 2 more ranks");
  CHECK(where_it_stands({places[0]}, signs, true) == "rank 0 has returned");
  CHECK(where_it_stands({}, {}, false).empty());
}

TEST_CASE("of ranks that print to files the last line there is said", "[tune][silence]") {
  const TemporaryFolder folder;
  const auto first = folder.path() / "0.log", none = folder.path() / "1.log";
  std::ofstream(first) << std::string(5000, 'x') << "\nepoch 1\nstep 2\n\n";
  CHECK(where_it_stands({2, {.node = "w1", .slot = 0}},
                        {{.process = 7, .last_line = ""}, {.process = 8, .last_line = ""}}, false,
                        {first, none}) ==
        "rank 0 (process 7 on w1) last printed 'step 2'; rank 1 (process 8 on w1) has printed no "
        "line to " +
            none.string());
}

}  // namespace silence_test
