#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/child.hpp"

using namespace troupe::test;

namespace {

/// Of a compressed IDX file the first `rows`, as an IDX file of its own. The size of one row is
/// `bytes`, and the header has a number of `header` bytes.
void take_rows(const std::string& from, const std::string& to, unsigned rows, std::size_t bytes,
               std::size_t header) {
  const auto unpacked = run(
      {"sh", "-c", "gzip -dc '" + from + "' | head -c " + std::to_string(header + rows * bytes)});
  REQUIRE(unpacked.exit_code == 0);
  auto text = unpacked.output;
  REQUIRE(text.size() == header + rows * bytes);
  for (std::size_t i = 0; i < 4; ++i)  // the number of rows, the high byte first
    text[4 + i] = static_cast<char>(rows >> (24 - 8 * i));
  std::ofstream(to, std::ios::binary) << text;
}

/// The first images of a part of MNIST.
void take_images(const std::string& data, const std::string& folder, const std::string& part,
                 unsigned rows) {
  const auto images = "/" + part + "-images-idx3-ubyte", labels = "/" + part + "-labels-idx1-ubyte";
  take_rows(data + images + ".gz", folder + images, rows, 28 * 28, 16);
  take_rows(data + labels + ".gz", folder + labels, rows, 1, 8);
}

}  // namespace

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

TEST_CASE("mnist_sweep finds a net that reads digits of MNIST", "[examples][train][tune]") {
  const std::string data = TROUPE_DATA_DIR + "/mnist";
  if (!std::filesystem::exists(data)) {
    std::cout << "skipped: no MNIST in '" << data << "' (CMake's TROUPE_DATA_DIR)\n";
    return;
  }
  // A part of it, so that the nine epochs of a trial take a second.
  const TemporaryFolder folder;
  take_images(data, folder.path(), "train", 4000);
  take_images(data, folder.path(), "t10k", 1000);
  const auto output = run_on_cluster(
      {.name = "train/mnist_sweep", .arguments = {"--trials", "6", "--data", folder.path()}});
  INFO(output);
  CHECK_THAT(output, Catch::Matches("6 trials, of which [1-6] were trained for all 9 epochs\n"
                                    "accuracy 0\\.[0-9]+ with lr .*, momentum .*, hidden "
                                    "(16|32|64|128)\n"));
  const std::string mark = "accuracy ";
  CHECK(std::stod(output.substr(output.find(mark) + mark.size())) > 0.85);
}
