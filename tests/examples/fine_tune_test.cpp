#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/child.hpp"

using namespace troupe::test;

namespace {

const std::regex kPercentage("([0-9]+) %");

const Example kFineTune{
    .name = "train/fine_tune",
    .arguments = {"--data", TROUPE_EXAMPLES + "/data/digits/digits.csv.gz"},
};

Example with(std::vector<std::string> more) {
  auto example = kFineTune;
  example.arguments.insert(example.arguments.end(), more.begin(), more.end());
  return example;
}

std::vector<int> percentages(const std::string& output) {
  std::vector<int> found;
  for (std::sregex_iterator at(output.begin(), output.end(), kPercentage), end; at != end; ++at)
    found.push_back(std::stoi((*at)[1]));
  return found;
}

std::string without_percentages(const std::string& output) {
  return std::regex_replace(output, kPercentage, "some %");
}

}  // namespace

TEST_CASE("fine_tune prints what it says, privately and on a cluster, and the file helps",
          "[examples][train]") {
  const auto promised = promised_output(kFineTune);
  for (const auto& output : {run_privately(kFineTune), run_on_cluster(kFineTune)}) {
    INFO(output);
    CHECK(without_percentages(output) == without_percentages(promised));
    const auto reached = percentages(output);
    REQUIRE(reached.size() == 3);
    // Other processors add in another order, which a training on few rows feels.
    for (std::size_t line = 0; line < reached.size(); ++line)
      CHECK(reached[line] == Approx(percentages(promised)[line]).margin(8));
    CHECK(reached[2] >= reached[1] + 10);
  }
}

TEST_CASE("fine_tune learns on the ranks of a cluster with ZeRO what it learns there without",
          "[examples][train]") {
  const auto ranks = GENERATE(as<std::string>(), "2", "3", "4");
  const auto learned = [&](const std::string& stage) {
    return percentages(run_on_cluster(with({"--ranks", ranks, "--zero", stage})));
  };
  const auto plain = learned("0");
  REQUIRE(plain.size() == 3);
  CHECK(plain[0] > 90);
  CHECK(plain[2] >= plain[1] + 10);
  for (const auto* stage : {"1", "2", "3"}) {
    INFO(ranks << " ranks, stage " << stage);
    const auto reached = learned(stage);
    REQUIRE(reached.size() == 3);
    for (std::size_t line = 0; line < reached.size(); ++line)
      CHECK(reached[line] == Approx(plain[line]).margin(3));
  }
}

TEST_CASE("fine_tune with ZeRO prints what it prints without", "[examples][train]") {
  const auto plain = run_privately(kFineTune);
  for (const std::string stage : {"1", "2", "3"}) {
    const auto output = run_privately(with({"--zero", stage}));
    CHECK(without_percentages(output) == without_percentages(plain));
    const auto reached = percentages(output);
    REQUIRE(reached.size() == 3);
    for (std::size_t line = 0; line < reached.size(); ++line)
      CHECK(reached[line] == Approx(percentages(plain)[line]).margin(3));
  }
}

TEST_CASE("fine_tune leaves the file that --file names, and nothing beside it",
          "[examples][train]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/net.safetensors";
  run_privately(with({"--file", file, "--ranks", "1", "--epochs", "1"}));
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    found.push_back(entry.path());
  CHECK(found == std::vector{file});
}

TEST_CASE("fine_tune names a file that cannot be read or written", "[examples][train]") {
  const auto refusal = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TROUPE_EXAMPLES_BUILT + "/train/fine_tune");
    const auto done = run(std::move(arguments), {"TROUPE_ADDRESS="});
    CHECK(done.exit_code == 1);
    return done.output;
  };
  CHECK_THAT(refusal({"--data", "/nowhere/digits.csv.gz"}),
             Catch::Contains("/nowhere/digits.csv.gz: No such file or directory"));
  CHECK_THAT(refusal(with({"--file", "/nowhere/net.safetensors"}).arguments),
             Catch::Contains("/nowhere/net.safetensors"));
}
