#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/child.hpp"

using namespace troupe::test;

TEST_CASE("mnist_sweep finds a net that has learnt, privately and on a cluster",
          "[examples][train][tune]") {
  const TemporaryFolder folder;
  const Example sweep{.name = "train/mnist_sweep",
                      .arguments = {"--trials", "6", "--storage", folder.path()}};
  for (const auto& output : {run_privately(sweep), run_on_cluster(sweep)}) {
    INFO(output);
    CHECK_THAT(output, Catch::Matches("6 trials, of which [1-6] were trained for all 9 epochs\n"
                                      "accuracy (1|0\\.[0-9]+) with lr .*, momentum .*, hidden "
                                      "(16|32|64|128)\n"));
    const std::string mark = "accuracy ";
    CHECK(std::stod(output.substr(output.find(mark) + mark.size())) > 0.8);
  }
  CHECK(std::filesystem::exists(folder.path() + "/run-2/report.html"));
}
