#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/child.hpp"

using namespace troupe::test;

namespace {

const std::string kProgram = TROUPE_EXAMPLES_BUILT + "/train/char_transformer";

/// A file with so many words, drawn from a few.
std::string text_in(const TemporaryFolder& folder, int words) {
  const std::vector<std::string> known{"the", "cat",   "dog", "sees", "a",
                                       "red", "house", "and", "runs", "small"};
  std::mt19937 random(1);
  const auto file = folder.path() + "/words.txt";
  std::ofstream out(file);
  for (int word = 0; word < words; ++word) {
    out << known.at(random() % known.size()) << (random() % 8 == 0 ? '\n' : ' ');
  }
  return file;
}

/// A transformer that a step takes milliseconds of.
std::vector<std::string> small_run(const std::string& data, const std::string& steps,
                                   const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--data",   data,  "--steps",        steps, "--layers",  "2",
                                     "--heads",  "2",   "--width",        "32",  "--context", "16",
                                     "--warmup", "4",   "--report-every", "1",   "--sample",  "20",
                                     "--rate",   "0.01"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// For each report the loss of training and that of validation.
std::vector<double> losses(const std::string& output) {
  static const std::regex kReport("step [0-9]+: loss ([0-9.]+), of validation ([0-9.]+); ");
  std::vector<double> found;
  for (std::sregex_iterator at(output.begin(), output.end(), kReport), end; at != end; ++at) {
    found.push_back(std::stod((*at)[1]));
    found.push_back(std::stod((*at)[2]));
  }
  return found;
}

std::vector<double> losses_with(const std::vector<std::string>& arguments) {
  return losses(run_privately({.name = "train/char_transformer", .arguments = arguments}));
}

void check_equal(const std::vector<double>& found, const std::vector<double>& wanted,
                 double margin) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t at = 0; at < found.size(); ++at) {
    INFO("loss " << at);
    CHECK(found[at] == Approx(wanted[at]).margin(margin));
  }
}

}  // namespace

TEST_CASE(
    "char_transformer has the same losses on one, two and four ranks and in all stages of ZeRO",
    "[examples][train]") {
  const TemporaryFolder folder;
  const auto data = text_in(folder, 500);
  const auto small = [&](const std::string& ranks, const std::string& zero) {
    return Example{
        .name = "train/char_transformer",
        .arguments = small_run(data, "8", {"--batch", "4", "--ranks", ranks, "--zero", zero})};
  };
  const auto alone = losses(run_privately(small("1", "0")));
  REQUIRE(alone.size() == 16);
  CHECK(alone.back() < alone.front() - 0.1);  // it learns
  constexpr double kRounding = 2e-5;          // float32 adds up in another order
  for (const auto* zero : {"1", "2", "3"}) {
    INFO("stage " << zero << " on a cluster");
    check_equal(losses(run_on_cluster(small("4", zero))), alone, kRounding);
  }
  for (const auto* zero : {"0", "1", "2", "3"}) {
    INFO("stage " << zero);
    check_equal(losses(run_privately(small("2", zero))), alone, kRounding);
  }
}

TEST_CASE("char_transformer learns in bfloat16 and float16 what it learns in float32",
          "[examples][train]") {
  const TemporaryFolder folder;
  const auto data = text_in(folder, 500);
  const auto with = [&](const std::string& precision, const std::string& zero) {
    return losses_with(small_run(
        data, "8", {"--batch", "4", "--ranks", "2", "--precision", precision, "--zero", zero}));
  };
  const auto wanted = with("float32", "0");
  check_equal(with("bfloat16", "0"), wanted, 0.02);
  check_equal(with("float16", "3"), wanted, 0.02);
}

TEST_CASE("char_transformer makes up a text, privately and on a cluster", "[examples][train]") {
  const Example example{
      .name = "train/char_transformer",
      .arguments = {"--steps", "2", "--batch", "2", "--layers", "1", "--sample", "30"}};
  for (const auto& output : {run_privately(example), run_on_cluster(example)}) {
    CHECK_THAT(output, Catch::Matches("without --data the text is made up: numbers in words\n"
                                      "152433 characters, of which 21 are different; ranks: 2\n"
                                      "step 2: loss .*, of validation .*; [0-9]+ tokens/s\n"
                                      "a sample:\n[^]{30}\n"));
    CHECK(losses(output).size() == 2);
  }
}

TEST_CASE("char_transformer says what its input lacks", "[examples][train]") {
  const TemporaryFolder folder;
  const auto refusal = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kProgram);
    const auto done = run(std::move(arguments), {"TROUPE_ADDRESS="});
    CHECK(done.exit_code == 1);
    return done.output;
  };
  CHECK(refusal({"--data", "/nowhere/text.txt"}) ==
        "char_transformer: /nowhere/text.txt: No such file or directory\n");
  CHECK(refusal({"--data", folder.path()}) ==
        "char_transformer: " + folder.path() + " is a folder\n");
  const auto file = folder.path() + "/text.txt";
  std::ofstream{file};
  CHECK(refusal({"--data", file}) == "char_transformer: " + file + " has nothing in it\n");
  std::ofstream(file) << std::string(10 * (12 * 64 + 1) - 1, 'a');
  CHECK(refusal({"--data", file}) ==
        "char_transformer: " + file +
            " is too short: the last tenth of its 7689 characters has to have 12 rows of 64, "
            "which takes 7690 or more\n");
  CHECK(refusal({"--batch", "12", "--ranks", "5"}) ==
        "char_transformer: --batch 12 is not a multiple of --ranks 5\n");
  CHECK(refusal({"--width", "128", "--heads", "3"}) ==
        "char_transformer: --width 128 is not a multiple of --heads 3\n");
}

TEST_CASE("char_transformer finds in tinyshakespeare what its first lines say",
          "[examples][train]") {
  const auto data = TROUPE_DATA_DIR + "/tinyshakespeare/input.txt";
  if (!std::filesystem::exists(data)) {
    std::cout << "skipped: no text in '" << data << "' (CMake's TROUPE_DATA_DIR)\n";
    return;
  }
  const Example example{.name = "train/char_transformer",
                        .arguments = {"--data", data, "--steps", "1", "--layers", "1"}};
  const auto promised = promised_output(example);
  CHECK_FALSE(losses(promised).empty());
  CHECK_THAT(run_privately(example),
             Catch::StartsWith(promised.substr(0, promised.find('\n') + 1) + "step 1: "));
}

TEST_CASE("char_transformer has the losses of the same model in PyTorch", "[examples][train]") {
  if (!std::filesystem::exists(TROUPE_TORCH_PYTHON)) {
    std::cout << "skipped: PyTorch is not here; './run test frameworks -- torch' installs it\n";
    return;
  }
  const TemporaryFolder folder;
  std::vector<std::string> command{
      TROUPE_TORCH_PYTHON, "-B",  TROUPE_EXAMPLE_TESTS + "/char_transformer.py", kProgram,
      "--tolerance",       "1e-4"};
  for (const auto& argument :
       small_run(text_in(folder, 1000), "30", {"--batch", "8", "--ranks", "2"}))
    command.push_back(argument);
  const auto done = run(command, {"TROUPE_ADDRESS="}, std::chrono::seconds(300));
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("the greatest difference in 30 reports is 0.0000"));
}
