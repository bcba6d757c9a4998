#include <algorithm>
#include <chrono>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/child.hpp"

using namespace troupe::test;

/// What `troupe run` makes of output that is no text in lines.
namespace {

Finished printed_by(const std::string& script) {
  return run({TROUPE_PROGRAM, "run", "--", "sh", "-c", script},
             {"TROUPE_ADDRESS=", "TROUPE_TOKEN="});
}

}  // namespace

TEST_CASE("megabytes without a line end are printed in pieces, and all of them", "[launch]") {
  const auto done = printed_by("head -c 3000000 /dev/zero | tr '\\0' '#'; echo; echo behind");
  CHECK(done.exit_code == 0);
  CHECK(std::count(done.output.begin(), done.output.end(), '#') == 3'000'000);
  std::size_t pieces = 0, longest = 0;
  for (std::size_t at = 0; (at = done.output.find("[0] #", at)) != std::string::npos; ++pieces) {
    const auto end = done.output.find('\n', at);
    REQUIRE(end != std::string::npos);
    longest = std::max(longest, end - at);
    at = end;
  }
  CHECK(pieces == 3);
  CHECK(longest == (1 << 20) + std::string("[0] ").size());
  CHECK_THAT(done.output, Catch::Contains("[0] behind\n"));
}

TEST_CASE("bytes that are no text are printed as they are", "[launch]") {
  const auto done = printed_by("printf 'a\\000b\\377\\033[1m\\r\\n\\200end'");
  CHECK(done.exit_code == 0);
  const std::string wanted(
      "[0] a\0b\xff\x1b[1m\r\n[0] \x80"
      "end\n",
      23);
  CHECK(done.output.find(wanted) != std::string::npos);
}

TEST_CASE("the last lines of a rank that printed no text are told, and are JSON", "[launch]") {
  const TemporaryFolder folder;
  const auto summary = folder.path() + "/summary.json";
  const auto done = run({TROUPE_PROGRAM, "run", "--summary", summary, "--", "sh", "-c",
                         "printf '\\377bad\\n'; exit 3"},
                        {"TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  CHECK(done.exit_code == 3);
  CHECK_THAT(done.output, Catch::Contains("its last lines:\n    \xff"
                                          "bad\n"));
  const auto told = nlohmann::json::parse(std::ifstream(summary));
  CHECK(told.at("failure").at("last_lines") == nlohmann::json{"\uFFFDbad"});
}
