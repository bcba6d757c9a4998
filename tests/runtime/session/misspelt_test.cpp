#include "session/misspelt.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

using troupe::runtime::kAddress;
using troupe::runtime::kNoWorkerOutput;
using troupe::runtime::kTokenFile;
using troupe::runtime::meant_by;
using troupe::runtime::misspelt_arguments;

TEST_CASE("an argument that is nearly an option of init is told from others",
          "[runtime][session][arguments]") {
  for (const std::string near : {"--adress", "--addres=10.0.0.1:7420", "-address", "--Address"}) {
    INFO(near);
    CHECK(meant_by(near) == kAddress);
  }
  CHECK(meant_by("--tokenfile") == kTokenFile);
  CHECK(meant_by("--no-worker-ouput") == kNoWorkerOutput);
  for (const std::string other :
       {"--address", "--address=h:1", "--token-file", "--no-worker-output", "address", "--seed",
        "-a", "--", "--add", "--epochs=3"}) {
    INFO(other);
    CHECK_FALSE(meant_by(other));
  }
}

TEST_CASE("what stands behind -- is not looked at", "[runtime][session][arguments]") {
  const std::vector<const char*> arguments{"program", "--adress", "h:1", "--", "--adress"};
  const auto lines = misspelt_arguments(static_cast<int>(arguments.size()), arguments.data());
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("'--adress'") && Catch::Contains("was --address meant?"));
}
