#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/child.hpp"

using namespace troupe::test;

namespace {

/// Of each line "epoch <n>: accuracy <x>"; the log's line at the end has an accuracy too.
std::vector<double> accuracies(const std::string& output) {
  const std::string mark = ": accuracy ";
  std::vector<double> found;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto epoch = line.find("epoch ");
    const auto at = line.find(mark);
    if (epoch != std::string::npos && at != std::string::npos)
      found.push_back(std::stod(line.substr(at + mark.size())));
  }
  return found;
}

void write_idx(const std::string& file, const std::vector<std::uint32_t>& sizes,
               const std::string& values) {
  std::string bytes{0, 0, 8, static_cast<char>(sizes.size())};
  for (const auto size : sizes)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift);
  std::ofstream(file, std::ios::binary) << bytes << values;
}

/// Images of two classes: all black, all white.
void write_data_set(const std::string& folder, const std::string& name, std::uint32_t rows) {
  std::string images;
  std::string labels;
  for (std::uint32_t row = 0; row < rows; ++row) {
    labels += static_cast<char>(row % 2);
    images.append(28 * 28, row % 2 ? '\xff' : '\0');
  }
  write_idx(folder + "/" + name + "-images-idx3-ubyte", {rows, 28, 28}, images);
  write_idx(folder + "/" + name + "-labels-idx1-ubyte", {rows}, labels);
}

}  // namespace

TEST_CASE("mnist with ZeRO prints what it prints without", "[examples][train]") {
  const auto printed = [](const std::string& stage) {
    return run_privately({.name = "train/mnist", .arguments = {"--epochs", "2", "--zero", stage}});
  };
  const auto plain = printed("0");
  INFO(plain);
  REQUIRE(accuracies(plain).size() == 2);
  CHECK(accuracies(plain).back() > 0.9);
  CHECK(printed("1") == plain);
  CHECK(printed("2") == plain);
  CHECK(printed("3") == plain);
}

TEST_CASE("mnist with ZeRO on the ranks of a cluster prints what it prints privately without",
          "[examples][train]") {
  const auto with = [](const std::string& ranks, const std::string& stage) {
    return Example{.name = "train/mnist",
                   .arguments = {"--epochs", "1", "--ranks", ranks, "--zero", stage}};
  };
  const auto plain = run_privately(with("2", "0"));
  for (const auto* stage : {"1", "2", "3"}) CHECK(run_on_cluster(with("2", stage)) == plain);
  const auto of_four = accuracies(run_on_cluster(with("4", "0")));
  REQUIRE(of_four.size() == 1);
  const auto cut_in_four = accuracies(run_on_cluster(with("4", "3")));
  REQUIRE(cut_in_four.size() == 1);
  // Four numbers may be added in two orders: an image or two in 500.
  CHECK(cut_in_four.back() == Approx(of_four.back()).margin(0.005));
}

TEST_CASE("programs that train say what they lack for --gpus on a machine without",
          "[examples][train]") {
  const auto digits = TROUPE_EXAMPLES + "/data/digits/digits.csv.gz";
  for (const auto& [program, data] : std::vector<std::pair<std::string, std::string>>{
           {"mnist", ""}, {"char_transformer", ""}, {"fine_tune", digits}, {"resume", digits}}) {
    INFO(program);
    const auto done =
        run({TROUPE_EXAMPLES_BUILT + "/train/" + program, "--gpus", "1", "--data", data},
            {"TROUPE_ADDRESS=", "CUDA_VISIBLE_DEVICES="});
    CHECK(done.exit_code == 1);
    CHECK_THAT(done.output, Catch::Contains("can never be placed: no node has cpu 1, gpu 1"));
  }
}

TEST_CASE("mnist learns in bfloat16 without ZeRO, and in float16 with its third stage",
          "[examples][train]") {
  const auto [precision, stage] =
      GENERATE(table<std::string, std::string>({{"bfloat16", "0"}, {"float16", "3"}}));
  const auto printed =
      run_privately({.name = "train/mnist",
                     .arguments = {"--epochs", "2", "--precision", precision, "--zero", stage}});
  INFO(precision << " " << stage << ": " << printed);
  REQUIRE(accuracies(printed).size() == 2);
  CHECK(accuracies(printed).back() > 0.9);
}

TEST_CASE("mnist learns a data set that it makes up, privately and on a cluster",
          "[examples][train]") {
  const Example mnist{.name = "train/mnist"};
  for (const auto& output : {run_privately(mnist), run_on_cluster(mnist)}) {
    INFO(output);
    CHECK_THAT(output,
               Catch::StartsWith("2000 images to train on, 500 to test with; ranks: 2\nepoch 1: "));
    REQUIRE(accuracies(output).size() == 4);
    CHECK(accuracies(output).back() > 0.9);
  }
}

TEST_CASE("mnist reads IDX files, and gives what one rank gives on three", "[examples][train]") {
  const TemporaryFolder folder;
  write_data_set(folder.path(), "train", 300);
  write_data_set(folder.path(), "t10k", 10);
  for (const char* ranks : {"1", "3"}) {
    const Example mnist{.name = "train/mnist",
                        .arguments = {"--data", folder.path(), "--ranks", ranks, "--epochs", "1"}};
    CHECK(run_on_cluster(mnist) == "300 images to train on, 10 to test with; ranks: " +
                                       std::string(ranks) + "\nepoch 1: accuracy 1\n");
  }
}

TEST_CASE("mnist names the file that is missing or is no IDX file", "[examples][train]") {
  const TemporaryFolder folder;
  write_data_set(folder.path(), "train", 20);
  write_data_set(folder.path(), "t10k", 10);
  const auto refusal = [&] {
    const auto done =
        run({TROUPE_EXAMPLES_BUILT + "/train/mnist", "--data", folder.path()}, {"TROUPE_ADDRESS="});
    CHECK(done.exit_code == 1);
    return done.output;
  };
  const auto labels = folder.path() + "/t10k-labels-idx1-ubyte";
  std::ofstream(labels, std::ios::binary) << "1234567890";
  CHECK_THAT(refusal(), Catch::Contains(labels + " is no IDX file of bytes in 1 dimensions"));
  write_idx(labels, {10}, "short");
  CHECK_THAT(refusal(), Catch::Contains(labels + " ends too early"));
  std::filesystem::remove(labels);
  CHECK_THAT(refusal(), Catch::Contains(labels + ": No such file or directory"));
}

// Two ranks compute for two minutes, on all processors of a small machine.
TEST_CASE("mnist reaches on MNIST what its first lines say, 99 % of the images",
          "[examples][train][extended][alone]") {
  const std::string folder = TROUPE_DATA_DIR + "/mnist";
  if (!std::filesystem::exists(folder)) {
    std::cout << "skipped: no MNIST in '" << folder << "' (CMake's TROUPE_DATA_DIR)\n";
    return;
  }
  const auto promised = accuracies(promised_output({.name = "train/mnist"}));
  const auto done = run({TROUPE_EXAMPLES_BUILT + "/train/mnist", "--data", folder},
                        {"TROUPE_ADDRESS="}, std::chrono::minutes(9));
  INFO(done.output);
  CHECK(done.exit_code == 0);
  const auto reached = accuracies(done.output);
  REQUIRE(reached.size() == promised.size());
  for (std::size_t epoch = 0; epoch < promised.size(); ++epoch)
    CHECK(reached[epoch] == Approx(promised[epoch]).margin(0.006));
  CHECK(reached.back() >= 0.99);
}
