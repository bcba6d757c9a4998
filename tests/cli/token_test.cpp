#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

TEST_CASE("a token file that is named comes before TROUPE_TOKEN", "[cli][token]") {
  TestCluster cluster(1);
  auto environment = cluster.environment();
  environment.at(1) = "TROUPE_TOKEN=" + std::string(64, 'a');
  const auto file = cluster.token_file();
  const auto status = run({TROUPE_PROGRAM, "status", "--head", cluster.address(), "--token-file", file}, environment);
  INFO(status.output);
  CHECK(status.exit_code == 0);
  const auto driver =
      run({TROUPE_TEST_DRIVER, "task", "--address", cluster.address(), "--token-file", file}, environment);
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
}
