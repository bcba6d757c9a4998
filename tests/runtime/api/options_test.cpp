#include <troupe/options.hpp>

#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/gang.hpp>
#include <troupe/with.hpp>

using troupe::Options;
using troupe::detail::own;
using Amounts = std::vector<std::pair<std::string, double>>;

TEST_CASE("options become named amounts, without those that are zero", "[api][options]") {
  CHECK(own({}).resources == Amounts{{"cpu", 1}});
  CHECK(own({.cpus = 1}).resources == Amounts{{"cpu", 1}});
  CHECK(own({.cpus = 0}).resources.empty());
  CHECK(own({.cpus = 2, .gpus = 0.5, .memory_gb = 3, .resources = {{"tpu", 4}, {"none", 0}}})
            .resources == Amounts{{"cpu", 2}, {"gpu", 0.5}, {"memory", 3}, {"tpu", 4}});
}

TEST_CASE("where the CPUs are not given, a task and a rank ask for one and an actor for none",
          "[api][options]") {
  using troupe::detail::for_actor, troupe::detail::for_rank, troupe::detail::for_task;
  for (const auto& options : {own({}), own({.cpus = -1})}) {
    CHECK(for_task(options).resources == Amounts{{"cpu", 1}});
    CHECK(for_rank(options).resources == Amounts{{"cpu", 1}});
    CHECK(for_actor(options).resources.empty());
  }
  CHECK(for_actor(own({.gpus = 1})).resources == Amounts{{"gpu", 1}});
  CHECK(for_task(own({.gpus = 1})).resources == Amounts{{"cpu", 1}, {"gpu", 1}});
  CHECK(for_actor(own({.cpus = 1})).resources == Amounts{{"cpu", 1}});
  CHECK(for_actor(own({.cpus = 0.5, .gpus = 1})).resources == Amounts{{"cpu", 0.5}, {"gpu", 1}});
  CHECK(for_task(own({.cpus = 0})).resources.empty());
  CHECK(for_rank(own({.cpus = 0})).resources.empty());

  CHECK(troupe::detail::default_task_options().resources == Amounts{{"cpu", 1}});
  CHECK(troupe::detail::default_actor_options().resources.empty());
  const auto kept = for_actor(own({.name = "a", .spread = true, .labels = {{"zone", "b"}}}));
  CHECK(kept.name == "a");
  CHECK(kept.spread);
  CHECK(kept.labels.size() == 1);
}

TEST_CASE("options keep nothing that they were given by reference", "[api][options]") {
  std::string name = "a name that is longer than a small string holds";
  const auto owned = own({.name = name, .spread = true, .labels = {{"zone", name}}});
  const auto kept = name;
  name.assign(name.size(), 'x');
  CHECK(owned.name == kept);
  CHECK(owned.labels.at(0).second == kept);
  CHECK(owned.spread);
}

TEST_CASE("options of ranks own what they were given, and ask for what options do",
          "[api][options]") {
  const auto made = [] {
    const std::string name = "a name that is longer than a small string holds";
    return troupe::RankOptions{.cpus = 2,
                               .gpus = 0.5,
                               .memory_gb = 3,
                               .resources = {{name, 4}, {"none", 0}},
                               .labels = {{"zone", name}, {name, "b"}}};
  };
  const auto asked = troupe::detail::request_of(made());
  const std::string name = "a name that is longer than a small string holds";
  CHECK(asked.resources == Amounts{{"cpu", 2}, {"gpu", 0.5}, {"memory", 3}, {name, 4}});
  CHECK(asked.labels ==
        std::vector<std::pair<std::string, std::string>>{{"zone", name}, {name, "b"}});
  CHECK(&troupe::detail::for_rank(asked) == &asked);
  CHECK(troupe::detail::request_of({}).resources == own({}).resources);
  CHECK(troupe::detail::request_of({}).cpus_by_kind);
  CHECK_THROWS_WITH(troupe::detail::request_of({.gpus = 1.5}),
                    Catch::StartsWith("RankOptions::gpus must be whole above 1, not 1.5"));
  CHECK_THROWS_WITH(troupe::detail::request_of({.labels = {{"", "x"}}}),
                    "RankOptions::labels has an entry without a name");
}

TEST_CASE("a name that is given to a task is refused, and what a task can have is not",
          "[api][options]") {
  const auto named = troupe::with({.name = "total"});
  CHECK_THROWS_AS(named.task<[] { return 1; }>(), std::invalid_argument);
  CHECK_THROWS_WITH(named.task<[] { return 1; }>(),
                    Catch::Contains("Options::name (\"total\")") &&
                        Catch::Contains("leave it out, or spawn an actor with it"));
  const auto owned = own({.cpus = 2,
                          .retries = 1,
                          .spread = true,
                          .resources = {{"tpu", 1}},
                          .labels = {{"zone", "a"}}});
  CHECK(&troupe::detail::for_task(owned) == &owned);
}

TEST_CASE("an actor cannot be given retries, nor a rank of a gang a name", "[api][options]") {
  struct Counter {};
  CHECK_THROWS_WITH(troupe::with({.retries = 2}).spawn<Counter>(),
                    Catch::Contains("Options::retries (2)") &&
                        Catch::Contains("catch ActorDied and spawn another"));
  CHECK_THROWS_WITH(troupe::gang<Counter>({.size = 2, .each = {.retries = 1}}),
                    Catch::Contains("Options::retries (1)"));
  CHECK_NOTHROW(troupe::with({.retries = 0}).spawn<Counter>());
  CHECK_THROWS_WITH(troupe::gang<Counter>({.size = 2, .each = {.name = "a"}}),
                    Catch::Contains("Options::name (\"a\")") && Catch::Contains("each rank"));
}

TEST_CASE("an amount that cannot be is refused with its field and its value", "[api][options]") {
  CHECK_THROWS_WITH(own({.cpus = -2}), "Options::cpus must be between 0 and 10^12, not -2");
  CHECK_THROWS_AS(own({.cpus = -0.5}), std::invalid_argument);
  CHECK_THROWS_WITH(own({.memory_gb = std::numeric_limits<double>::infinity()}),
                    Catch::Contains("Options::memory_gb"));
  CHECK_THROWS_WITH(own({.gpus = std::numeric_limits<double>::quiet_NaN()}),
                    Catch::Contains("Options::gpus"));
  CHECK_THROWS_WITH(own({.gpus = 1.5}), Catch::Contains("whole above 1, not 1.5"));
  CHECK_THROWS_WITH(own({.resources = {{"tpu", -2}}}),
                    Catch::Contains("Options::resources[\"tpu\"]"));
  CHECK_THROWS_WITH(own({.resources = {{"gpu", 1}}}), Catch::Contains("an option of its own"));
  CHECK_THROWS_WITH(own({.resources = {{"tpu", 1}, {"tpu", 2}}}), Catch::Contains("twice"));
  CHECK_THROWS_AS(own({.resources = {{"", 1}}}), std::invalid_argument);
  CHECK_THROWS_AS(own({.labels = {{"", "x"}}}), std::invalid_argument);
  CHECK_THROWS_WITH(own({.retries = -2}), Catch::Contains("Options::retries"));
}

TEST_CASE("what cannot be a name is refused with its field, what is wrong and what to give",
          "[api][options]") {
  const std::string bad = "bad\xff";
  const auto refusal =
      Catch::Contains("it is not UTF-8; give 1 to 256 bytes of UTF-8 without control characters");
  CHECK_THROWS_WITH(own({.name = bad}), Catch::StartsWith("Options::name 'bad") && refusal);
  CHECK_THROWS_WITH(own({.resources = {{bad, 0}}}),
                    Catch::StartsWith("the name in Options::resources") && refusal);
  CHECK_THROWS_WITH(own({.labels = {{bad, "x"}}}),
                    Catch::StartsWith("the name in Options::labels") && refusal);
  CHECK_THROWS_WITH(own({.labels = {{"x", bad}}}),
                    Catch::StartsWith("the value in Options::labels") && refusal);
  CHECK_THROWS_AS(own({.name = bad}), std::invalid_argument);
  CHECK_THROWS_WITH(own({.name = "two\nlines"}), Catch::Contains("it has a control character"));
  CHECK_THROWS_WITH(own({.name = std::string(1'000'000, 'x')}),
                    Catch::Contains("it has 1000000 bytes"));
  CHECK(own({.name = "Größe", .labels = {{"zone", ""}}}).name == "Größe");
}
