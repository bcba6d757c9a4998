#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;

TEST_CASE("the README's first program prints the same privately and on a cluster",
          "[examples][core]") {
  const Example program{.name = "first_steps"};
  const auto printed = run_privately(program);
  CHECK(printed == "832050\n");
  CHECK(run_on_cluster(program) == printed);
}

TEST_CASE("guest_book prints what it says, privately and on a cluster", "[examples][core]") {
  check_example({.name = "core/guest_book"});
}

TEST_CASE("two programs share the guest book", "[examples][core]") {
  TestCluster cluster(2);
  const std::string program = TROUPE_EXAMPLES_BUILT + "/core/guest_book";
  CHECK(printed_by({program, "--stay"}, cluster.environment()) == "1 guest has signed\n");
  CHECK(printed_by({program}, cluster.environment()) == "2 guests have signed\n");
  CHECK(printed_by({program}, cluster.environment()) == "1 guest has signed\n");
  CHECK(cluster.all_is_free());
}

TEST_CASE("monte_carlo_pi prints what it says, privately and on a cluster", "[examples][core]") {
  check_example({.name = "core/monte_carlo_pi"});
}

TEST_CASE("parameter_server prints what it says, privately and on a cluster", "[examples][core]") {
  check_example({.name = "core/parameter_server"});
}

TEST_CASE("word_count prints what it says, privately and on a cluster", "[examples][core]") {
  check_example({.name = "core/word_count", .input = TROUPE_EXAMPLES + "/core/jabberwocky.txt"});
}

TEST_CASE("pipeline prints what it says, privately and on a cluster", "[examples][core]") {
  check_example({.name = "core/pipeline"});
}

TEST_CASE("errors prints what it says, privately and on a cluster", "[examples][core]") {
  check_example({.name = "core/errors"});
}

TEST_CASE("retries prints what it says, privately and on a cluster", "[examples][core]") {
  check_example({.name = "core/retries"});
}
