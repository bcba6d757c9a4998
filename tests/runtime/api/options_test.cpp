#include <troupe/options.hpp>

#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/with.hpp>

using troupe::Options;
using troupe::detail::own;
using Amounts = std::vector<std::pair<std::string, double>>;

TEST_CASE("options become named amounts, without those that are zero", "[api][options]") {
  CHECK(own({}).resources == Amounts{{"cpu", 1}});
  CHECK(own({.cpus = 0}).resources.empty());
  CHECK(own({.cpus = 2, .gpus = 0.5, .memory_gb = 3, .resources = {{"tpu", 4}, {"none", 0}}}).resources ==
        Amounts{{"cpu", 2}, {"gpu", 0.5}, {"memory", 3}, {"tpu", 4}});
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

TEST_CASE("a name that is given to a task is refused, and what a task can have is not", "[api][options]") {
  const auto named = troupe::with({.name = "total"});
  CHECK_THROWS_AS(named.task<[] { return 1; }>(), std::invalid_argument);
  CHECK_THROWS_WITH(named.task<[] { return 1; }>(), Catch::Contains("Options::name (\"total\")") &&
                                                        Catch::Contains("leave it out, or spawn an actor with it"));
  const auto owned =
      own({.cpus = 2, .retries = 1, .spread = true, .resources = {{"tpu", 1}}, .labels = {{"zone", "a"}}});
  CHECK(&troupe::detail::for_task(owned) == &owned);
}

TEST_CASE("an amount that cannot be is refused with its field and its value", "[api][options]") {
  CHECK_THROWS_WITH(own({.cpus = -1}), "Options::cpus must be between 0 and 10^12, not -1");
  CHECK_THROWS_WITH(own({.memory_gb = std::numeric_limits<double>::infinity()}), Catch::Contains("Options::memory_gb"));
  CHECK_THROWS_WITH(own({.gpus = std::numeric_limits<double>::quiet_NaN()}), Catch::Contains("Options::gpus"));
  CHECK_THROWS_WITH(own({.gpus = 1.5}), Catch::Contains("whole above 1, not 1.5"));
  CHECK_THROWS_WITH(own({.resources = {{"tpu", -2}}}), Catch::Contains("Options::resources[\"tpu\"]"));
  CHECK_THROWS_WITH(own({.resources = {{"gpu", 1}}}), Catch::Contains("an option of its own"));
  CHECK_THROWS_WITH(own({.resources = {{"tpu", 1}, {"tpu", 2}}}), Catch::Contains("twice"));
  CHECK_THROWS_AS(own({.resources = {{"", 1}}}), std::invalid_argument);
  CHECK_THROWS_AS(own({.labels = {{"", "x"}}}), std::invalid_argument);
  CHECK_THROWS_WITH(own({.retries = -2}), Catch::Contains("Options::retries"));
}
