#include "experiment/journal.hpp"

#include <limits>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>

#include "experiment/recorded.hpp"
#include "rounds.hpp"
#include "run/drive.hpp"
#include "run/fake_launcher.hpp"
#include "support/recording.hpp"

namespace journal_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

Experiment search(std::uint64_t seed = 5, ExperimentOptions options = {.max_failures = 1},
                  bool promote = false) {
  options.objective = {"accuracy", Max};
  options.seed = seed;
  return {options,
          std::make_unique<RandomSearcher>(SearchSpace{{"quality", uniform(0, 1)}}, seed, 25),
          asha({.max_t = 9, .eta = 3, .brackets = 2, .promote = promote})(options.objective, seed)};
}
Experiment one_of_both(std::uint64_t seed, bool promote) {
  return search(seed, {.max_failures = 1}, promote);
}

/// The same lines, with the numbers and checksums that a run would have given them: what is wrong with
/// them is what they say.
std::string numbered_anew(const std::string& journal) {
  std::string text, line;
  std::uint64_t number = 0;
  for (std::istringstream lines(journal); std::getline(lines, line);) {
    auto json = parse(line, "a line of a journal");
    for (const auto* key : {"number", "crc"}) json.erase(key);
    text += numbered_line(dump(json), number++) + "\n";
  }
  return text;
}

FakeLauncher::Script script(std::size_t capacity, std::uint64_t seed) {
  FakeLauncher::Script script{.capacity = capacity, .reports = 12, .checkpoints = true};
  script.value = [seed](const Launch& launch, std::int64_t t) {
    Random random(seed, launch.trial, std::to_string(t));
    return random.below(15) == 0 ? std::numeric_limits<double>::quiet_NaN() : random.unit();
  };
  script.step = [seed](const Launch& launch) {
    return 0.5 + Random(seed, launch.trial, "step").unit();
  };
  script.failure = [seed](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    const bool fails =
        launch.attempt == 1 && Random(seed, launch.trial, "fails").below(5) == 0 && t == 2;
    return fails ? std::optional<std::string>("lost, \"quoted\"\nand on two lines") : std::nullopt;
  };
  return script;
}

}  // namespace

TEST_CASE("a journal cut anywhere gives the state in which it was written", "[tune][journal]") {
  const auto seed = GENERATE(5u, 6u, 7u);
  const bool promote = GENERATE(false, true);
  CAPTURE(seed, promote);
  auto original = one_of_both(seed, promote);
  const auto recording = record(original, script(4, seed));
  REQUIRE(recording.ends.size() > 100);

  for (std::size_t line = 0; line < recording.ends.size();
       line += troupe::test::stride(7, recording.ends.size())) {
    CAPTURE(line);
    auto replayed = one_of_both(seed, promote);
    const auto torn = recording.journal.substr(0, recording.ends[line]) + R"({"event":"report)";
    CHECK(replay(torn, replayed) == recording.ends[line]);
    REQUIRE(replayed.save() == recording.states[line]);
  }
}

TEST_CASE("a state loaded anywhere, and the rest of the journal, give the state at its end",
          "[tune][journal]") {
  const auto seed = GENERATE(5u, 6u, 7u);
  const bool promote = GENERATE(false, true);
  CAPTURE(seed, promote);
  auto original = one_of_both(seed, promote);
  const auto recording = record(original, script(4, seed));
  for (std::size_t line = 0; line < recording.ends.size();
       line += troupe::test::stride(7, recording.ends.size())) {
    CAPTURE(line);
    auto loaded = one_of_both(seed, promote);
    loaded.load(recording.states[line]);
    REQUIRE(loaded.save() == recording.states[line]);
    apply_events(recording.journal, loaded, {}, line);
    REQUIRE(loaded.save() == recording.states.back());
  }
}

TEST_CASE("a journal with trials whose time was over gives the states in which it was written",
          "[tune][journal]") {
  const auto limited = [] {
    return search(5, {.max_failures = 1, .stop = {.trial_time = std::chrono::seconds(6)}});
  };
  auto slow = script(4, 5);
  slow.step = [](const Launch& launch) {
    return launch.trial % 3 == 1 ? 1e9 : launch.trial % 3 == 2 ? 4.0 : 0.5;
  };
  auto original = limited();
  const auto recording = record(original, slow);
  const auto overdue = recording.journal.find(R"("event":"overdue")");
  REQUIRE(overdue != std::string::npos);

  for (std::size_t line = 0; line < recording.ends.size(); ++line) {
    CAPTURE(line);
    auto replayed = limited();
    replay(recording.journal.substr(0, recording.ends[line]), replayed);
    REQUIRE(replayed.save() == recording.states[line]);
  }
  auto too_early = recording.journal;
  const auto time = too_early.find("\"now\":", overdue) + 6;
  too_early.replace(time, too_early.find(',', time) - time, "0.5");
  auto replayed = limited();
  CHECK_THROWS_WITH(replay(numbered_anew(too_early), replayed),
                    Catch::Contains("and this search does not"));
}

TEST_CASE("a journal that goes on after events which nobody has is refused", "[tune][journal]") {
  auto original = search(5);
  const auto recording = record(original, script(2, 5));
  const auto header = journal_header(search(5));
  const auto rest = numbered_line(header, 10) + "\n" + recording.journal.substr(recording.ends[10]);
  CHECK(events_before(rest) == 10);
  CHECK_NOTHROW(check_header(rest, header));

  auto loaded = search(5);
  loaded.load(recording.states[12]);  // the first two events of the journal are known
  CHECK(apply_events(rest, loaded, {}, 12) == rest.size());
  CHECK(loaded.save() == recording.states.back());
  auto too_early = search(5);
  too_early.load(recording.states[9]);
  CHECK_THROWS_WITH(apply_events(rest, too_early, {}, 9),
                    Catch::Contains("goes on after event 10") && Catch::Contains("event 9"));
  auto fresh = search(5);
  CHECK_THROWS_WITH(replay(rest, fresh), Catch::Contains("the snapshot before it is gone"));
}

TEST_CASE("what is no state, or another search's, is not loaded", "[tune][journal]") {
  auto original = search(5), other = search(6);
  const auto state = record(original, script(2, 5)).states.back();
  CHECK_THROWS_WITH(other.load(state), Catch::Contains("saved by another search"));
  CHECK_THROWS_AS(search(5).load("{}"), std::invalid_argument);
  CHECK_THROWS_AS(search(5).load("garbage"), std::invalid_argument);
  auto without = state;
  const auto at = without.find("\"outcome\"");
  REQUIRE(at != std::string::npos);
  without.replace(at, 9, "\"comeout\"");
  CHECK_THROWS_WITH(search(5).load(without), Catch::Contains("not the state of a search"));
}

TEST_CASE("a search interrupted anywhere and taken up again ends as if nothing had happened",
          "[tune][journal]") {
  const auto seed = GENERATE(5u, 6u);
  const bool promote = GENERATE(false, true);
  CAPTURE(seed, promote);
  auto undisturbed = one_of_both(seed, promote);
  const auto recording = record(undisturbed, script(1, seed));

  for (std::size_t line = 1; line < recording.ends.size();
       line += troupe::test::stride(5, recording.ends.size())) {
    CAPTURE(line);
    auto resumed = one_of_both(seed, promote);
    replay(recording.journal.substr(0, recording.ends[line]), resumed);
    resumed.requeue_running(Seconds(0));
    FakeLauncher cluster(script(1, seed));
    drive(resumed, cluster, {}, {});
    REQUIRE(fate(resumed) == fate(undisturbed));
  }
}

TEST_CASE("a run that reached its goal is replayed as such", "[tune][journal]") {
  auto original = search(5, {.stop = {.reaches = 0.9}});
  const auto recording = record(original, script(3, 5));
  REQUIRE(original.closed());
  for (std::size_t line = 0; line < recording.ends.size(); ++line) {
    auto replayed = search(5, {.stop = {.reaches = 0.9}});
    replay(recording.journal.substr(0, recording.ends[line]), replayed);
    REQUIRE(replayed.save() == recording.states[line]);
  }
}

TEST_CASE("a journal of another search, or one that was changed, is refused by its line",
          "[tune][journal]") {
  auto original = search(5);
  const auto journal = record(original, script(2, 5)).journal;

  auto other = search(6);
  CHECK_THROWS_WITH(replay(journal, other), Catch::Contains("the journal is of another search"));

  auto changed = journal;
  const auto at = changed.find("\"decision\":\"stop\"");
  REQUIRE(at != std::string::npos);
  changed.replace(at, 17, "\"decision\":\"finish\"");
  changed = numbered_anew(changed);
  auto same = search(5);
  CHECK_THROWS_WITH(replay(changed, same),
                    Catch::Contains("of the journal: trial") && Catch::Contains("decision was"));

  auto third = search(5);
  const auto header = journal.substr(0, journal.find('\n') + 1);
  CHECK_THROWS_WITH(replay(header + numbered_line(R"({"event":"reported"})", 1) + "\n", third),
                    Catch::Contains("line 2 of the journal: not an event"));
  auto fifth = search(5);
  const auto of_nobody = R"({"event":"ended","now":1,"trial":7,"attempt":1})";
  CHECK_THROWS_WITH(replay(header + numbered_line(of_nobody, 1) + "\n", fifth),
                    Catch::Contains("there is no trial 7"));
  auto sixth = search(5);
  const auto ended = journal.substr(journal.find("{\"event\":\"ended\""));
  const auto twice = numbered_anew(journal + ended.substr(0, ended.find('\n') + 1));
  CHECK_THROWS_WITH(replay(twice, sixth),
                    Catch::Contains("is in no gang at this place of the journal"));
}

TEST_CASE("the header of a run with one objective names no others", "[tune][journal]") {
  CHECK_THAT(
      journal_header(search(5)),
      Catch::StartsWith(
          R"({"journal":6,"metric":"accuracy","mode":"max","seed":5,"max_failures":1,)"
          R"("system_retries":3,"stop":{"reports":0,"reaches":null},"searcher":{"searcher":"random",)"
          R"x("seed":5,"trials":25,"space":{"quality":"uniform(0, 1)"}},"scheduler":{)x"));
  CHECK_THAT(journal_header(search(5, {.objectives = {{"accuracy", Max}, {"latency", Min}}})),
             Catch::StartsWith(
                 R"({"journal":6,"metric":"accuracy","mode":"max","objectives":[{"metric":)"
                 R"("accuracy","mode":"max"},{"metric":"latency","mode":"min"}],"seed":5,)"));
}

TEST_CASE("a journal names its objectives byte by byte", "[tune][journal]") {
  const std::vector<Objective> objectives{{"a\xff", Max}, {"a\xfe", Min}};
  ExperimentOptions options{.objective = objectives[0],
                            .stop = {.cost = 5, .cost_metric = "a\xfd"},
                            .objectives = objectives};
  const Experiment begun{
      options, std::make_unique<RandomSearcher>(SearchSpace{{"quality", uniform(0, 1)}}, 5, 25),
      asha({.max_t = 9, .eta = 3})(options.objective, 5)};
  const auto journal = numbered_line(journal_header(begun), 0) + "\n";
  const auto recorded = recorded_experiment(journal, false, {});
  const auto& read = recorded.experiment->options();
  CHECK(read.objective == objectives[0]);
  CHECK(read.objectives == objectives);
  CHECK(read.stop.cost_metric == "a\xfd");
}

TEST_CASE("an event reads back as it was written", "[tune][journal]") {
  Event report{.kind = Event::Kind::Reported, .trial = 3, .attempt = 2, .t = 9};
  report.metrics = {{"a \"b\"", std::numeric_limits<double>::infinity()}, {"c", 0.1}};
  report.checkpoint = "x/y";
  report.decision = Stop{"no, \n", 2};
  report.now = Seconds(0.1);
  CHECK(to_line(event_from(to_line(report))) == to_line(report));
  CHECK(event_from(to_line(report)).metrics[0].value == std::numeric_limits<double>::infinity());
}

TEST_CASE("a decision of every kind reads back as it was written", "[tune][journal]") {
  const Exploit exploit{.donor = 3,
                        .checkpoint = "node 1:/x/y",
                        .checkpoint_t = 7,
                        .donor_takeovers = 2,
                        .config = {{"lr", 0.1}, {"batch", 64}},
                        .why = "it is \"worse\""};
  auto in_turn = exploit;
  in_turn.in_turn = true;
  const std::vector<Decision> decisions{GoOn{},           GoOn{"passed", 1, "note, \n"},
                                        Stop{},           Stop{"no, \n", 2},
                                        Finish{"enough"}, Pause{"behind"},
                                        exploit,          in_turn};
  for (const auto& decision : decisions) {
    CAPTURE(name_of(decision));
    Event report{.kind = Event::Kind::Reported, .trial = 3, .attempt = 2, .t = 9};
    report.decision = decision;
    CHECK(event_from(to_line(report)).decision == decision);

    Event gone{.kind = Event::Kind::Failed,
               .trial = 3,
               .attempt = 2,
               .text = "x is gone",
               .fault = Fault::Checkpoint};
    gone.decision = decision;
    CHECK(event_from(to_line(gone)).decision == decision);
    CHECK(event_from(to_line(gone)).fault == Fault::Checkpoint);
  }

  Event launch{
      .kind = Event::Kind::Launched, .trial = 3, .attempt = 2, .t = 7, .config = exploit.config};
  launch.checkpoint = exploit.checkpoint;
  launch.decision = exploit;
  const auto again = event_from(to_line(launch));
  CHECK(again.decision == Decision{exploit});
  CHECK(again.t == 7);
  CHECK(again.checkpoint == exploit.checkpoint);

  launch.decision = GoOn{"promoted from rung 0 (t=1): loss 0.3 is place 1 of 6", 0, {}};
  CHECK_THAT(to_line(launch), Catch::Contains(R"("reason":"promoted from rung 0 (t=1): loss 0.3)"));
  CHECK(event_from(to_line(launch)).decision == launch.decision);
}

TEST_CASE("the journal says of each resumption why, and one that differs is refused",
          "[tune][journal]") {
  auto original = search(5, {}, true);
  const auto journal = record(original, script(4, 5)).journal;
  std::size_t resumed = 0, begun = 0;
  std::string line, chosen;
  for (std::istringstream lines(journal); std::getline(lines, line);) {
    if (line.find(R"("event":"launched")") == std::string::npos) continue;
    if (line.find(R"("attempt":1,)") != std::string::npos) {
      ++begun;
      CHECK(line.find("reason") == std::string::npos);
    } else if (line.find(R"("reason":"promoted from rung )") != std::string::npos) {
      ++resumed;
      chosen = line;
    }
  }
  CHECK(begun == 25);
  REQUIRE(resumed > 0);
  auto changed = journal;
  changed.replace(changed.find(chosen) + chosen.find("promoted from"), 8, "resumed");
  changed = numbered_anew(changed);
  auto same = search(5, {}, true);
  CHECK_THROWS_WITH(replay(changed, same), Catch::Contains("the journal launched trial") &&
                                               Catch::Contains("as resumed from rung") &&
                                               Catch::Contains("as promoted from rung"));
}

TEST_CASE("a journal holds where each attempt ran, and goes without", "[tune][journal]") {
  Event event{.kind = Event::Kind::Started, .trial = 3, .attempt = 2, .now = Seconds(1)};
  CHECK(to_line(event) == R"({"event":"started","now":1.0,"trial":3,"attempt":2})");
  CHECK(event_from(to_line(event)).places.empty());
  event.places = {{"alpha \"1\"", 0}, {"beta", 12}};
  CHECK(event_from(to_line(event)).places == event.places);
  CHECK_THROWS_WITH(
      event_from(R"({"event":"started","now":1.0,"trial":3,"attempt":2,"places":[["a"]]})"),
      Catch::Contains("not an event of a journal"));
}

TEST_CASE("who follows a journal that is applied again is told where attempts ran",
          "[tune][journal]") {
  auto original = search(5), replayed = search(5);
  auto journal = numbered_line(journal_header(original), 0) + "\n";
  std::uint64_t events = 0;
  original.observe([&](const Event& event, const Trial*) {
    journal += numbered_line(to_line(event), ++events) + "\n";
  });
  original.next(Seconds(0));
  const std::vector<Place> places{{"alpha", 1}, {"alpha", 2}};
  original.started(0, Seconds(1), places);
  std::vector<Place> told;
  replay(journal, replayed, [&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Started) told = event.places;
  });
  CHECK(told == places);
  CHECK(replayed.save() == original.save());
}

}  // namespace journal_test
