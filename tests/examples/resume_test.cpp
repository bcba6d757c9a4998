#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/child.hpp"

using namespace troupe::test;
namespace fs = std::filesystem;

namespace {

const Example kResume{
    .name = "train/resume",
    .arguments = {"--data", TROUPE_EXAMPLES + "/data/digits/digits.csv.gz"},
};

const std::regex kShare("([0-9]+) %");

std::string without_share(const std::string& output) {
  return std::regex_replace(output, kShare, "some %");
}

int share_in(const std::string& output) {
  std::smatch found;
  return std::regex_search(output, found, kShare) ? std::stoi(found[1]) : -1;
}

std::string resumed_with(std::vector<std::string> more) {
  auto example = kResume;
  example.arguments.insert(example.arguments.end(), more.begin(), more.end());
  return run_privately(example);
}

}  // namespace

TEST_CASE("resume prints what it says, privately and on a cluster", "[examples][train]") {
  const auto promised = promised_output(kResume);
  for (const auto& output : {run_privately(kResume), run_on_cluster(kResume)}) {
    INFO(output);
    CHECK(without_share(output) == without_share(promised));
    CHECK(share_in(output) == Approx(share_in(promised)).margin(3));
  }
}

TEST_CASE(
    "resume goes on with other ranks and another stage of ZeRO, and keeps the best and the last",
    "[examples][train]") {
  const TemporaryFolder folder;
  const auto storage = folder.path() + "/runs";
  CHECK(without_share(resumed_with(
            {"--storage", storage, "--ranks", "2", "--zero", "3", "--stop-after", "4"})) ==
        "epochs 1 to 4, from the beginning\nsome % of the held-out rows are read right\n");
  CHECK(without_share(resumed_with(
            {"--storage", storage, "--ranks", "1", "--zero", "0", "--stop-after", "3"})) ==
        "epochs 5 to 7, from checkpoint_000003\nsome % of the held-out rows are read right\n");
  const auto output = resumed_with({"--storage", storage, "--ranks", "2", "--zero", "1"});
  CHECK(without_share(output) ==
        "epochs 8 to 10, from checkpoint_000006\nsome % of the held-out rows are read right\n");
  CHECK(share_in(output) >= 85);
  CHECK(without_share(resumed_with({"--storage", storage})) ==
        "all epochs were trained before\nsome % of the held-out rows are read right\n");
  const auto there = std::distance(fs::directory_iterator(storage), fs::directory_iterator());
  CHECK(there >= 6);  // of each run three or four
  CHECK(there <= 10);
  CHECK(fs::exists(storage + "/checkpoint_000009"));
}
