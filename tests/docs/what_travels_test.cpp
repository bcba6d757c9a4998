// docs/what_travels.md names these tests; its code is in what_travels.cpp.
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

std::string facts(std::vector<std::string> environment, const std::vector<std::string>& more,
                  const std::string& folder) {
  environment.push_back("FROM_SHELL=driver");
  std::vector<std::string> command{"env", "-C", folder, TROUPE_WHAT_TRAVELS, "an argument"};
  command.insert(command.end(), more.begin(), more.end());
  const auto done = run(std::move(command), environment);
  INFO(done.output);
  CHECK(done.exit_code == 0);
  return done.output;
}

/// What a driver prints that was started in `folder`.
std::string privately(const std::string& folder) {
  return facts({"TROUPE_ADDRESS=", "TROUPE_TOKEN="}, {}, folder);
}
std::string on_cluster(const std::string& folder) {
  TestCluster cluster(1);
  return facts(cluster.environment(), {"--address", cluster.address()}, folder);
}

}  // namespace

TEST_CASE("worker processes see what main did before init, and not what it did after",
          "[docs][travel]") {
  const TemporaryFolder folder;
  for (const auto& seen : {privately(folder.path()), on_cluster(folder.path())}) {
    CHECK_THAT(seen, Contains("phase: before init\n") && Contains("FROM_MAIN: set\n") &&
                         Contains("FROM_LATER_MAIN: (not set)\n"));
    CHECK_THAT(seen, Contains("runs there: 1\n") && Contains("runs here: 0\n"));
  }
}

TEST_CASE("worker processes of a private cluster are copies of the driver, those of a node are not",
          "[docs][travel]") {
  const TemporaryFolder folder;
  CHECK_THAT(privately(folder.path()),
             Contains("initialised: here\n") && Contains("FROM_SHELL: driver\n"));
  CHECK_THAT(on_cluster(folder.path()),
             Contains("initialised: there\n") && Contains("FROM_SHELL: (not set)\n"));
}

TEST_CASE("worker processes have the driver's arguments and directory, and no input or token",
          "[docs][travel]") {
  const TemporaryFolder folder;
  for (const auto& seen : {privately(folder.path()), on_cluster(folder.path())}) {
    CHECK_THAT(seen, Contains("directory: " + folder.path() + "\n") &&
                         Contains("argument: the same\n") && Contains("input: null\n") &&
                         Contains("TROUPE_TOKEN: (not set)\n"));
  }
}

TEST_CASE("a file that main opens before init is open in worker processes, a later one is not",
          "[docs][travel]") {
  const TemporaryFolder folder;
  for (const auto& seen : {privately(folder.path()), on_cluster(folder.path())})
    CHECK_THAT(seen, Contains("early file: zero\n") && Contains("late file: not open\n"));
}

TEST_CASE("the values, the functions and the exception of the page travel", "[docs][travel]") {
  const TemporaryFolder folder;
  for (const auto& seen : {privately(folder.path()), on_cluster(folder.path())}) {
    CHECK_THAT(seen, Contains("sample: portrait of a cat, from cat.raw by a camera, 12 pixels, "
                              "100000 in the mask\nlog: 1\n"));
    CHECK_THAT(seen, Contains("rows: 2\nscaled: 10\ndoubled: 42\nthrown: std::out_of_range\n"));
  }
}
