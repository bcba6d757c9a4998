#include <troupe/tune/searchers/own.hpp>

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "searchers/given.hpp"
#include "support/search_runs.hpp"
#include "support/temporary_folder.hpp"

namespace own_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

const SearchSpace kLine{{"x", uniform(0, 1)}, {"kind", choice({"a", "b"})}};

/// Draws the first trial, and then goes half-way from the best configuration to a drawn one.
class Halfway final : public OwnSearch {
 public:
  explicit Halfway(const SearchSetup& setup) : setup_{setup} {}

  Suggestion ask(Random& random) override {
    auto x = setup_.space[0].domain.sample(random);
    const auto kind = setup_.space[1].domain.sample(random);
    if (best_) x = (std::get<double>(x.value()) + best_x_) / 2;
    return Configuration{{"x", x}, {"kind", kind}};
  }
  void tell(const Configuration& configuration, const TrialEnd& end) override {
    if (!end.best || (best_ && !setup_.objective.better(*end.best, *best_))) return;
    best_ = end.best;
    best_x_ = std::get<double>(configuration[0].second.value());
  }

 private:
  SearchSetup setup_;
  std::optional<double> best_;
  double best_x_ = 0;
};

/// Refers to the setup that it was made with, and copies nothing of it.
class Referring final : public OwnSearch {
 public:
  explicit Referring(const SearchSetup& setup) : setup_{setup} {}
  Suggestion ask(Random& random) override {
    Configuration drawn;
    for (const auto& [name, domain] : setup_.space) drawn.emplace_back(name, domain.sample(random));
    return drawn;
  }
  void tell(const Configuration&, const TrialEnd&) override {}

 private:
  const SearchSetup& setup_;
};

/// Asks for the same configuration each time.
class Fixed final : public OwnSearch {
 public:
  explicit Fixed(Suggestion answer) : answer_{std::move(answer)} {}
  Suggestion ask(Random&) override { return answer_; }
  void tell(const Configuration&, const TrialEnd&) override {}

 private:
  Suggestion answer_;
};

/// Asks for two at a time, and waits for the end of both.
class InPairs final : public OwnSearch {
 public:
  explicit InPairs(const SearchSetup& setup) : setup_{setup} {}
  Suggestion ask(Random& random) override {
    if (asked_ % 2 == 0 && told_ < asked_) return Later{};
    ++asked_;
    return Configuration{{"x", setup_.space[0].domain.sample(random)},
                         {"kind", setup_.space[1].domain.sample(random)}};
  }
  void tell(const Configuration&, const TrialEnd&) override { ++told_; }

 private:
  SearchSetup setup_;
  int asked_ = 0, told_ = 0;
};

struct Line {
  double x = 0;
  std::string kind = "a";
};

void line(Context& ctx, const Line& config) {
  for (int t = 1; t <= 9; ++t) {
    if (ctx.report({{"loss", std::abs(config.x - 0.25) + 1.0 / t}}) == Verdict::Stop) return;
  }
}

SearcherFactory fixed(const Suggestion& answer) {
  return own_searcher("fixed",
                      [answer](const SearchSetup&) { return std::make_unique<Fixed>(answer); });
}

SearchSetup setup_of(std::uint64_t trials, std::uint64_t seed = 5) {
  return {.space = kLine, .objective = {"loss", Min}, .seed = seed, .trials = trials};
}

double x_of(const Configuration& configuration) {
  return std::get<double>(configuration[0].second.value());
}

void end_at(Searcher& searcher, TrialId trial, double value) {
  searcher.on_end(trial, {.best = value, .last = value, .t = 1});
}

}  // namespace

TEST_CASE("a searcher of the user's own is told what became of what it asked for",
          "[tune][own_searcher]") {
  const auto searcher = own_searcher<Halfway>("halfway")(setup_of(40));
  const auto off = [](double x) { return std::abs(x - 0.25); };
  double best = x_of(suggested(*searcher, 0));
  end_at(*searcher, 0, off(best));
  for (TrialId trial = 1; trial < 40; ++trial) {
    const auto x = x_of(suggested(*searcher, trial));
    CHECK(x >= best / 2);
    CHECK(x <= (best + 1) / 2);
    end_at(*searcher, trial, off(x));
    if (off(x) < off(best)) best = x;
  }
  CHECK(off(best) < 0.05);
  CHECK(searcher->size() == 40);
  CHECK(std::holds_alternative<NoMore>(searcher->suggest(40)));
  CHECK(suggested(*own_searcher<Halfway>("halfway")(setup_of(1, 6)), 0) !=
        suggested(*own_searcher<Halfway>("halfway")(setup_of(1, 7)), 0));
}

TEST_CASE("a saved searcher of the user's own asks for what the one that saved it does",
          "[tune][own_searcher]") {
  for (TrialId until = 0; until < 20; ++until) {
    const auto searcher = own_searcher<Halfway>("halfway")(setup_of(40));
    const auto loaded = own_searcher<Halfway>("halfway")(setup_of(40));
    std::vector<Configuration> begun;
    for (TrialId trial = 0; trial < until; ++trial) {
      begun.push_back(suggested(*searcher, trial));
      if (trial >= 3) end_at(*searcher, trial - 3, std::abs(x_of(begun[trial - 3]) - 0.25));
    }
    loaded->load(searcher->save());
    REQUIRE(loaded->save() == searcher->save());
    for (TrialId trial = until; trial < 40; ++trial) {
      begun.push_back(suggested(*searcher, trial));
      REQUIRE(suggested(*loaded, trial) == begun.back());
      if (trial < 3) continue;
      for (auto* each : {searcher.get(), loaded.get()})
        end_at(*each, trial - 3, std::abs(x_of(begun[trial - 3]) - 0.25));
    }
  }
}

TEST_CASE("a searcher of the user's own is told of results that are known and of given trials",
          "[tune][own_searcher]") {
  GivenSearcher searcher(own_searcher<Halfway>("halfway")(setup_of(20)),
                         {{{"x", 0.5}, {"kind", "a"}}}, {{{{"x", 1e-9}, {"kind", "a"}}, 0.0, {}}},
                         19);
  CHECK(x_of(suggested(searcher, 0)) == 0.5);
  end_at(searcher, 0, 0.5);
  for (TrialId trial = 1; trial < 10; ++trial) CHECK(x_of(suggested(searcher, trial)) <= 0.5);
}

TEST_CASE(
    "a searcher of the user's own that breaks its contract is refused, and the error says how",
    "[tune][own_searcher]") {
  const auto refused = [](const Configuration& answer) {
    const auto searcher = fixed(answer)(setup_of(3));
    CHECK_THROWS_AS(searcher->suggest(0), std::logic_error);
    try {
      searcher->suggest(0);
    } catch (const std::logic_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({{"x", 2.0}, {"kind", "a"}}),
             Catch::Contains("the searcher 'fixed' answered 'x=2, kind=a': field 'x' is not in "
                             "uniform(0, 1)"));
  CHECK_THAT(refused({{"x", 0.5}}), Catch::Contains("field 'kind' is not at place 1"));
  CHECK_THAT(refused({{"x", 0.5}, {"kind", "a"}, {"y", 1}}),
             Catch::Contains("field 'y' is not in the space"));
  CHECK_THROWS_WITH(own_searcher<Halfway>("halfway")(setup_of(0)),
                    Catch::Contains("the searcher 'halfway' walks no grid"));
  CHECK_THROWS_WITH(own_searcher<Halfway>(""), Catch::Contains("needs a name"));

  const auto made_null = [](const SearchSetup&) { return std::unique_ptr<OwnSearch>(); };
  CHECK_THROWS_WITH(own_searcher("none", made_null)(setup_of(1)), Catch::Contains("nullptr"));
}

namespace {

struct OfTheUser : std::domain_error {
  using std::domain_error::domain_error;
};

/// Throws when it is made, asked or told: as a call of the cluster does, or an exception of its own.
class Throwing final : public OwnSearch {
 public:
  explicit Throwing(const std::string& when, bool as_cluster = false)
      : when_{when}, as_cluster_{as_cluster} {
    throw_if("made");
  }
  Suggestion ask(Random&) override {
    throw_if("asked");
    return Configuration{{"x", 0.5}, {"kind", "a"}};
  }
  void tell(const Configuration&, const TrialEnd&) override { throw_if("told"); }

 private:
  void throw_if(const std::string& call) const {
    if (when_ != call) return;
    if (as_cluster_) raise({.kind = Failure::Kind::StoreFull, .message = "no more ideas"});
    throw OfTheUser("no more ideas");
  }

  std::string when_;
  bool as_cluster_;
};

tune::Options<Line> in_process(SearcherFactory searcher) {
  return {.space = {{"x", uniform(0, 1)}, {"kind", choice({"a", "b"})}},
          .trials = 6,
          .metric = "loss",
          .searcher = std::move(searcher),
          .show = Show::None,
          .in_process = true};
}

}  // namespace

TEST_CASE("a searcher of the user's own that has no more before the last trial is told of",
          "[tune][own_searcher]") {
  CHECK_THAT(tune::run<line>(in_process(fixed(NoMore{}))).summary(),
             Catch::Contains("the searcher had no more after 0 of 6 trials"));
}

TEST_CASE("an exception of a searcher of the user's own names the call, and its run can go on",
          "[tune][own_searcher]") {
  const std::string when = GENERATE("made", "asked", "told");
  const bool as_cluster = GENERATE(false, true);
  const TemporaryFolder folder;
  auto options = in_process(own_searcher(
      "mine", [&](const SearchSetup&) { return std::make_unique<Throwing>(when, as_cluster); }));
  options.storage = folder.path();
  const auto place = when == "made"    ? "was made"
                     : when == "asked" ? "was asked for trial 0"
                                       : "was told how trial 0 ended";
  try {
    tune::run<line>(options);
    FAIL("the exception is lost");
  } catch (const std::exception& thrown) {
    CHECK(thrown.what() ==
          "tune: the searcher 'mine' threw as it " + std::string(place) + ": no more ideas");
    if (as_cluster)
      CHECK_THROWS_AS(std::rethrow_if_nested(thrown), StoreFull);
    else
      CHECK_THROWS_AS(std::rethrow_if_nested(thrown), OfTheUser);
  }
  if (when == "made") return;  // before the run's folder is
  const auto run = folder.path() / "run-1";
  CHECK_THAT(content_of(run / "summary.json"), Catch::Contains("no more ideas"));
  options.searcher =
      own_searcher("mine", [](const SearchSetup&) { return std::make_unique<Throwing>("never"); });
  const auto rest = tune::resume<line>(run, options);
  CHECK(rest.ended_early() == "");
  CHECK(rest.trials().size() == 6);
}

TEST_CASE("a searcher of the user's own that threw is called no more, also beside paused trials",
          "[tune][own_searcher]") {
  const TemporaryFolder folder;
  int asked = 0, told = 0;
  class ThrowsLater final : public OwnSearch {
   public:
    ThrowsLater(int& asked, int& told) : asked_{asked}, told_{told} {}
    Suggestion ask(Random& random) override {
      if (++asked_ == 5) throw OfTheUser("no more ideas");
      return Configuration{{"x", kLine[0].domain.sample(random)}, {"kind", "a"}};
    }
    void tell(const Configuration&, const TrialEnd&) override {
      ++told_;
      throw OfTheUser("no more ears");
    }

   private:
    int& asked_;
    int& told_;
  };
  auto options = in_process(own_searcher(
      "mine", [&](const SearchSetup&) { return std::make_unique<ThrowsLater>(asked, told); }));
  options.trials = 9;
  options.scheduler = asha({.max_t = 9, .eta = 3, .promote = true});
  options.storage = folder.path();
  CHECK_THROWS_WITH(tune::run<line>(options), Catch::Contains("the searcher 'mine' threw as it"));
  CHECK(asked + told <= 6);
  CHECK_THAT(content_of(folder.path() / "run-1" / "summary.json"),
             Catch::Contains("the searcher 'mine' threw as it") &&
                 !Catch::Contains("\"running\"") && !Catch::Contains("\"paused\""));
}

TEST_CASE("a searcher of the user's own that waits for ever is an error and no wait",
          "[tune][own_searcher]") {
  CHECK_THROWS_WITH(tune::run<line>(in_process(fixed(Later{}))),
                    Catch::Contains("answers Later for trial 0, and no "
                                    "trial runs or is paused"));
}

TEST_CASE("a searcher of the user's own that waits for its trials sees them end beside pauses",
          "[tune][own_searcher]") {
  auto options = in_process(own_searcher<InPairs>("in pairs"));
  options.trials = 12;
  options.scheduler = asha({.max_t = 9, .eta = 3, .promote = true});
  const auto results = tune::run<line>(options);
  CHECK(results.ended_early() == "");
  CHECK(results.trials().size() == 12);
}

TEST_CASE("the setup of a searcher of the user's own lives as long as it, loaded or not",
          "[tune][own_searcher]") {
  const auto factory = own_searcher<Referring>("referring");
  const auto searcher = factory(setup_of(9)), loaded = factory(setup_of(9));
  suggested(*searcher, 0);
  loaded->load(searcher->save());
  CHECK(suggested(*loaded, 1) == suggested(*searcher, 1));
}

TEST_CASE("a searcher of the user's own refuses a state that it does not come to itself",
          "[tune][own_searcher]") {
  const auto before = fixed(Configuration{{"x", 0.5}, {"kind", "a"}})(setup_of(3));
  suggested(*before, 0);
  const auto other = fixed(Configuration{{"x", 0.25}, {"kind", "a"}})(setup_of(3));
  const auto none = fixed(Later{})(setup_of(3));
  CHECK_THROWS_WITH(other->load(before->save()),
                    Catch::Contains("answered 'x=0.5, kind=a' for trial 0 before, and now "
                                    "'x=0.25, kind=a'"));
  CHECK_THROWS_WITH(other->load(before->save()), Catch::Contains("its random numbers alone"));
  const auto longer = fixed(Configuration{{"x", 0.25}, {"kind", "a"}})(setup_of(4));
  CHECK_THROWS_WITH(longer->load(before->save()),
                    Catch::Contains("it was made for 3 trials then and for 4 now"));
  CHECK_THROWS_WITH(none->load(before->save()), Catch::Contains("and now nothing"));
  CHECK_THROWS_WITH(own_searcher<Halfway>("halfway")(setup_of(3))->load(before->save()),
                    Catch::Contains("searcher is \"fixed\" there, \"halfway\" here"));
  CHECK(std::holds_alternative<Later>(none->suggest(0)));
  CHECK(std::holds_alternative<Configuration>(other->suggest(0)));  // unchanged
}

}  // namespace own_test
