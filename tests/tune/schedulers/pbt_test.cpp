#include <troupe/tune/schedulers/pbt.hpp>

#include <algorithm>
#include <limits>
#include <map>

#include <catch2/catch.hpp>

#include "support/scheduler.hpp"
#include "support/toy.hpp"

namespace pbt_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
const SearchSpace kMutate{{"lr", loguniform(1e-4, 1)}};

/// Members whose reports a test makes by hand, all of them running.
class Members {
 public:
  Members(std::size_t count, PbtOptions options)
      : pbt_{complete(std::move(options)), {"accuracy", Max}, 1} {
    for (TrialId id = 0; id < count; ++id)
      trials_.push_back(
          {.id = id, .config = {{"lr", 0.1}, {"momentum", 0.9}}, .status = Status::Running});
  }

  Decision report(TrialId id, std::int64_t t, double accuracy, bool with_checkpoint = true) {
    auto& trial = trials_[id];
    trial.t = t;
    trial.last = {{"accuracy", accuracy}};
    if (with_checkpoint) {
      trial.checkpoint = std::to_string(id) + "@" + std::to_string(t);
      trial.checkpoint_t = t;
    }
    const auto decision = pbt_.on_report(trial, {trials_, to_come});
    if (std::holds_alternative<Pause>(decision)) trial.status = Status::Paused;
    if (const auto* exploit = std::get_if<Exploit>(&decision)) take_over(trial, *exploit);
    return decision;
  }
  std::optional<Resume> resume() {
    const auto turn = pbt_.on_place({trials_, to_come});
    const auto* resume = std::get_if<Resume>(&turn);
    if (!resume) return std::nullopt;
    trials_[resume->trial].status = Status::Running;
    if (resume->exploit) take_over(trials_[resume->trial], *resume->exploit);
    return *resume;
  }
  void end(TrialId id) {
    trials_[id].status = Status::Terminated;
    pbt_.on_end(id, {trials_, to_come});
  }
  void fail(TrialId id) {
    trials_[id].status = Status::Pending;
    pbt_.on_failure(id, {trials_, to_come});
  }
  std::optional<Exploit> checkpoint_gone(TrialId id) {
    return pbt_.on_checkpoint_gone(trials_[id], trials_[id].checkpoint, {trials_, to_come});
  }

  Trial& operator[](TrialId id) { return trials_[id]; }
  Pbt& pbt() { return pbt_; }

  std::uint64_t to_come = 0;

 private:
  static PbtOptions complete(PbtOptions options) {
    if (options.mutate.empty()) options.mutate = kMutate;
    return options;
  }
  static void take_over(Trial& trial, const Exploit& exploit) {
    trial.config = exploit.config;
    trial.checkpoint = exploit.checkpoint;
    trial.t = trial.checkpoint_t = exploit.checkpoint_t;
    trial.status = exploit.in_turn ? Status::Paused : Status::Running;
  }

  Pbt pbt_;
  std::vector<Trial> trials_;
};

bool pauses(const Decision& decision) { return std::holds_alternative<Pause>(decision); }

}  // namespace

TEST_CASE(
    "on the toy problem of the paper, populations that resample reach the optimum and others do "
    "not",
    "[tune][pbt]") {
  const SearchSpace mutate{{"h0", uniform(0, 1)}, {"h1", uniform(0, 1)}};
  const auto best = [&](double resample, double quantile) {
    std::vector<double> results;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Toy toy({.interval = 4, .quantile = quantile, .resample = resample, .mutate = mutate}, seed);
      results.push_back(toy.run(200));
    }
    std::ranges::sort(results);
    return results;
  };
  const auto resampled = best(0.25, 0.25);
  CHECK(resampled[10] == Approx(1.2).margin(0.0005));   // 5th percentile
  CHECK(resampled[189] == Approx(1.2).margin(0.0005));  // 95th
  const auto cloned = best(0, 0.25);
  CHECK(cloned.front() == Approx(0.39).margin(0.0005));
  CHECK(cloned.back() == Approx(0.39).margin(0.0005));
  const auto alone = best(0.25, 0);
  CHECK(alone.front() == Approx(0.39).margin(0.0005));
  CHECK(alone.back() == Approx(0.39).margin(0.0005));
}

TEST_CASE(
    "a member is judged at its first report an interval after the last judgement, and not before "
    "the burn-in (rule 1)",
    "[tune][pbt]") {
  Members members(2, {.interval = 3, .burn_in = 5});
  for (std::int64_t t = 1; t <= 4; ++t) CHECK(members.report(0, t, 0.9).index() == 0);
  CHECK(why_of(members.report(0, 5, 0.9)) == "judged: accuracy 0.9 at t=5 is place 1 of 1");
  CHECK(goes_on(members.report(1, 4, 0.1)));
  const auto decision = members.report(1, 5, 0.1);
  REQUIRE(std::holds_alternative<Exploit>(decision));
  CHECK(std::get<Exploit>(decision).donor == 0);
  CHECK(std::get<Exploit>(decision).checkpoint == "0@5");
  CHECK(why_of(decision) == "accuracy 0.1 at t=5 is place 2 of 2, trial 0 has 0.9 at t=5");
  CHECK(why_of(members.report(0, 6, 0.9)).empty());
  CHECK(why_of(members.report(0, 8, 0.9)) ==
        "judged: accuracy 0.9 at t=8 is place 1 of 2, the last 1 take over");
}

TEST_CASE(
    "the worst take over the best as they were judged, and keep what is not mutated (rules 2, 3, "
    "4)",
    "[tune][pbt]") {
  Members members(4, {.interval = 2, .resample = 0});
  members.report(0, 2, 0.5);
  members.report(1, 2, 0.9);
  members.report(2, 2, 0.7);
  members.report(1, 3, 0.2);  // is not judged: 0.9 of t=2 counts, and its checkpoint
  members[1].config[0].second = 0.05;
  const auto decision = members.report(3, 2, 0.1);
  const auto& exploit = std::get<Exploit>(decision);
  CHECK(exploit.donor == 1);
  CHECK(exploit.checkpoint == "1@2");
  CHECK(exploit.checkpoint_t == 2);
  CHECK_FALSE(exploit.in_turn);
  const auto lr = std::get<double>(exploit.config[0].second.value());
  CHECK((lr == Approx(0.12) || lr == Approx(0.08)));
  CHECK(exploit.config[1] == Configuration::value_type("momentum", 0.9));
}

TEST_CASE("after a takeover a member is judged an interval after its donor was (rule 3)",
          "[tune][pbt]") {
  Members members(2, {.interval = 4});
  members.report(0, 6, 0.9);
  REQUIRE(std::holds_alternative<Exploit>(members.report(1, 4, 0.1)));
  CHECK(members[1].t == 6);
  for (std::int64_t t = 7; t <= 9; ++t) CHECK(why_of(members.report(1, t, 0.95)).empty());
  CHECK(why_of(members.report(1, 10, 0.95)) ==
        "judged: accuracy 0.95 at t=10 is place 1 of 2, the last 1 take over");
}

TEST_CASE("a value that is not finite is the worst and never a donor's (rules 1, 3)",
          "[tune][pbt]") {
  Members members(2, {.interval = 1});
  CHECK(goes_on(members.report(0, 1, kNan)));
  CHECK(goes_on(members.report(1, 1, -1e300)));
  CHECK(std::get<Exploit>(members.report(0, 2, kNan)).donor == 1);
  CHECK(goes_on(members.report(1, 2, std::numeric_limits<double>::infinity())));
  CHECK(goes_on(members.report(0, 2, kNan)));
}

TEST_CASE("a member without a checkpoint is no donor, and its first report says so once (rule 3)",
          "[tune][pbt]") {
  Members members(2, {.interval = 1});
  const auto first = members.report(0, 1, 0.9, false);
  CHECK(std::get<GoOn>(first).notice.find("ctx.report({...}, ctx.checkpoint(model, optimizer))") !=
        std::string::npos);
  CHECK(std::get<GoOn>(members.report(0, 2, 0.9, false)).notice.empty());
  CHECK(goes_on(members.report(1, 1, 0.1, false)));
  CHECK(goes_on(members.report(0, 3, 0.9)));
  CHECK(std::get<Exploit>(members.report(1, 2, 0.1, false)).donor == 0);
}

TEST_CASE("one who is over is neither donor nor counted (rule 2)", "[tune][pbt]") {
  Members members(3, {.interval = 1});
  members.report(0, 1, 0.9);
  members.report(1, 1, 0.5);
  members.end(0);
  CHECK(std::get<Exploit>(members.report(2, 2, 0.1)).donor == 1);
  members.end(1);
  CHECK(goes_on(members.report(2, 3, 0.1)));
}

TEST_CASE("a donor's checkpoint that is gone is replaced by the next best, or by nothing (rule 7)",
          "[tune][pbt]") {
  Members members(8, {.interval = 1});
  for (TrialId id = 0; id < 7; ++id) members.report(id, 1, 0.1 * static_cast<double>(id + 2));
  auto exploit = std::get<Exploit>(members.report(7, 1, 0.1));
  REQUIRE((exploit.donor == 5 || exploit.donor == 6));
  const auto other = members.checkpoint_gone(7);
  REQUIRE(other);
  CHECK(other->donor == (exploit.donor == 5 ? 6 : 5));
  members[7].checkpoint = other->checkpoint;
  CHECK_FALSE(members.checkpoint_gone(7));
  const auto kept = members.pbt().checkpoints();
  CHECK(std::ranges::count(kept, "5@1") + std::ranges::count(kept, "6@1") == 0);
}

TEST_CASE("members take turns where others have no place and are behind (rule 5)", "[tune][pbt]") {
  Members members(4, {.interval = 2, .quantile = 0});
  members.to_come = 2;  // two of four have a place
  members[2].status = members[3].status = Status::Pending;
  CHECK(goes_on(members.report(0, 1, 0.5)));
  CHECK(pauses(members.report(0, 2, 0.5)));
  CHECK_FALSE(members.resume());  // those to come go first
  members.to_come = 0;
  CHECK(goes_on(members.report(1, 2, 0.5, false)));  // nothing to go on from
  CHECK(pauses(members.report(1, 3, 0.5)));
  members[2].status = members[3].status = Status::Running;
  members[0].launch = 1;
  members[1].launch = 2;
  CHECK(goes_on(members.report(2, 2, 0.5)));  // 0 is at 2 as well
  CHECK(pauses(members.report(2, 4, 0.5)));
  CHECK(members.resume()->trial == 0);
  CHECK(members.resume()->trial == 1);
  CHECK(members.resume()->trial == 2);
  CHECK_FALSE(members.resume());
}

TEST_CASE("a takeover waits for its turn where others are behind what it goes on from (rule 5)",
          "[tune][pbt]") {
  Members members(3, {.interval = 2});
  members.report(0, 2, 0.9);
  members[2].status = Status::Pending;
  const auto exploit = std::get<Exploit>(members.report(1, 2, 0.1));
  CHECK(exploit.in_turn);
  CHECK(members[1].status == Status::Paused);
  CHECK_FALSE(members.resume()->exploit);
}

TEST_CASE("a synchronous population waits for its last member, and then goes on together (rule 6)",
          "[tune][pbt]") {
  Members members(4, {.interval = 2, .synchronous = true});
  CHECK(goes_on(members.report(0, 1, 0.4)));
  CHECK(pauses(members.report(0, 2, 0.4)));
  CHECK(pauses(members.report(1, 3, 0.1)));
  CHECK_FALSE(members.resume());
  CHECK(pauses(members.report(2, 2, 0.8)));
  CHECK(goes_on(members.report(3, 2, 0.9)));  // the last: 1 is to take over 3
  const auto kept = members.pbt().checkpoints();
  CHECK(std::ranges::count(kept, "3@2") == 1);

  std::map<TrialId, bool> exploits;
  while (const auto resumed = members.resume()) {
    exploits[resumed->trial] = resumed->exploit.has_value();
    if (resumed->exploit) CHECK(resumed->exploit->donor == 3);
  }
  CHECK(exploits == std::map<TrialId, bool>{{0, false}, {1, true}, {2, false}});
  CHECK(goes_on(members.report(3, 3, 0.9)));
  CHECK(pauses(members.report(3, 4, 0.9)));  // the next time is t=4
}

TEST_CASE("a synchronous population does not wait for a member that failed, or is over (rule 6)",
          "[tune][pbt]") {
  Members members(3, {.interval = 2, .quantile = 0, .synchronous = true});
  CHECK(pauses(members.report(0, 2, 0.4)));
  CHECK(pauses(members.report(1, 2, 0.4)));
  SECTION("it failed") {
    members.fail(2);
    CHECK(members.resume());
    CHECK(members.resume());
    CHECK(goes_on(members.report(2, 1, 0.4)));  // it is there again, and waited for
    CHECK(pauses(members.report(0, 4, 0.4)));
    CHECK(pauses(members.report(1, 4, 0.4)));
    CHECK_FALSE(members.resume());
    CHECK(goes_on(members.report(2, 4, 0.4)));
    CHECK(members.resume());
  }
  SECTION("it is over") {
    members.end(2);
    CHECK(members.resume());
    CHECK(members.resume());
  }
}

TEST_CASE("a member ends at max_t, unjudged (rule 8)", "[tune][pbt]") {
  Members members(2, {.interval = 2, .max_t = 4});
  members.report(0, 2, 0.9);
  const auto decision = members.report(1, 4, 0.1);
  CHECK(std::get<Finish>(decision).why == "trained to max_t=4");
}

TEST_CASE("the state of a population is taken up whole, and another's is refused", "[tune][pbt]") {
  const PbtOptions options{.interval = 2, .synchronous = true, .mutate = kMutate};
  Members members(3, options);
  members.report(0, 2, 0.4);
  members.report(1, 2, kNan);
  members.report(2, 2, 0.9);
  Pbt other(options, {"accuracy", Max}, 1);
  other.load(members.pbt().save());
  CHECK(other.save() == members.pbt().save());
  Pbt different({.interval = 3, .mutate = kMutate}, {"accuracy", Max}, 1);
  CHECK_THROWS_WITH(different.load(members.pbt().save()),
                    "saved by another scheduler: interval is 2 there, 3 here");
  CHECK_THROWS_AS(other.load("{}"), std::invalid_argument);
}

TEST_CASE("options of a population that can not be are refused with what is wrong", "[tune][pbt]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(pbt({.mutate = kMutate}),
                    Contains("pbt: interval is 0: give the reports between two judgements"));
  CHECK_THROWS_WITH(pbt({.interval = 1}), Contains("mutate is empty"));
  CHECK_THROWS_WITH(pbt({.interval = 5, .max_t = 5, .mutate = kMutate}),
                    Contains("max_t is 5, so nobody would be judged"));
  CHECK_THROWS_WITH(pbt({.interval = 1, .quantile = 0.6, .mutate = kMutate}),
                    Contains("quantile is 0.6, 0 to 0.5"));
  CHECK_THROWS_WITH(pbt({.interval = 1, .resample = -1, .mutate = kMutate}),
                    Contains("resample is -1, 0 to 1"));
  CHECK_THROWS_WITH(pbt({.interval = 1, .factors = {}, .mutate = kMutate}),
                    Contains("factors is empty"));
  CHECK_THROWS_WITH(pbt({.interval = 1, .factors = {0.0}, .mutate = kMutate}),
                    Contains("a factor is 0"));
  CHECK_THROWS_WITH(pbt({.interval = 1, .burn_in = -1, .mutate = kMutate}),
                    Contains("burn_in is -1"));
  CHECK_THROWS_WITH(pbt({.interval = 1, .mutate = {kMutate[0], kMutate[0]}}),
                    Contains("field 'lr' stands twice"));
}

TEST_CASE("where training ends nobody takes over, and nobody is taken over (rule 9)",
          "[tune][pbt]") {
  Members members(4, {.interval = 5});
  members.report(0, 20, 0.9);
  members.report(1, 20, 0.8);
  members.end(0);
  CHECK(why_of(members.report(2, 20, 0.1)) ==
        "judged: accuracy 0.1 at t=20 is place 2 of 2, the last 1 take over; training ends at "
        "t=20");
  CHECK(why_of(members.report(3, 15, 0.05)) ==
        "judged: accuracy 0.05 at t=15 is place 3 of 3, the last 1 take over; none of the best "
        "has a checkpoint from before training ends at t=20");
  members.report(1, 21, 0.8);  // it did not end there
  CHECK(std::get<Exploit>(members.report(3, 20, 0.05)).donor == 1);
}

TEST_CASE("a synchronous population does not take over where training ends either (rules 6, 9)",
          "[tune][pbt]") {
  Members members(3, {.interval = 2, .synchronous = true});
  CHECK(pauses(members.report(0, 2, 0.9)));
  CHECK(pauses(members.report(1, 2, 0.5)));
  members.end(0);
  CHECK(goes_on(members.report(2, 2, 0.1)));
  const auto resumed = members.resume();
  REQUIRE(resumed);
  CHECK(resumed->trial == 1);
  CHECK_FALSE(resumed->exploit);
}

}  // namespace pbt_test
