#include "train/rates.hpp"

#include <string>

#include <catch2/catch.hpp>

using namespace troupe::bench;

TEST_CASE("the bandwidths of an all-reduce are those of nccl-tests", "[bench][rates]") {
  const auto two = bandwidth_of_all_reduce(64'000'000, 0.002, 2);
  CHECK(two.algorithm == Approx(32));
  CHECK(two.bus == Approx(32));  // each rank sends half of the buffer twice
  const auto eight = bandwidth_of_all_reduce(64'000'000, 0.002, 8);
  CHECK(eight.algorithm == Approx(32));
  CHECK(eight.bus == Approx(56));                                 // 32 * 2 * 7 / 8
  CHECK(bandwidth_of_all_reduce(64'000'000, 0.002, 1).bus == 0);  // nothing is sent
}

TEST_CASE("the operations of GPT-2's smallest model for a token are those worked out by hand",
          "[bench][rates]") {
  // Of a layer 12 * 768^2 = 7,077,888 parameters multiply, of all 84,934,656; the output layer
  // has 50,304 * 768 = 38,633,472: N = 123,568,128, and 6 * N = 741,408,768. The attention term is
  // 12 * 12 * 768 * 1,024 = 113,246,208.
  CHECK(flops_per_token({}) == 854'654'976.0);
  CHECK(flops_per_token({.layers = 1, .heads = 1, .width = 1, .context = 1, .vocabulary = 1}) ==
        6.0 * (12 + 1) + 12);
}

TEST_CASE("the peak of a GPU is known by its name, or is unknown", "[bench][rates]") {
  const auto peak = [](const std::string& name) { return peak_tflops_of(name).value_or(0); };
  CHECK(peak("NVIDIA H100 80GB HBM3") == 989);
  CHECK(peak("NVIDIA H100 PCIe") == 756);
  CHECK(peak("NVIDIA H100 NVL") == 835);
  CHECK(peak("NVIDIA H200") == 989);
  CHECK(peak("NVIDIA H200 NVL") == 835);
  CHECK(peak("NVIDIA A100-SXM4-80GB") == 312);
  CHECK(peak("NVIDIA A100 80GB PCIe") == 312);
  CHECK(peak("NVIDIA A10") == 125);
  CHECK(peak("NVIDIA L40S") == 362);
  CHECK(peak("NVIDIA L40") == 181);
  CHECK(peak("NVIDIA L4") == 121);
  for (const auto* other : {"NVIDIA A10G", "NVIDIA GeForce RTX 4090", "NVIDIA H200 MIG 1g.18gb",
                            "Tesla V100-SXM2-16GB", ""}) {
    INFO(other);
    CHECK(!peak_tflops_of(other));
  }
}

TEST_CASE("what a GPU computes is said with the share of its peak", "[bench][rates]") {
  // 20 steps a second of 16 * 1,024 tokens: 327,680 tokens a second, 280.05 TFLOP/s.
  const auto h100 = computing({}, 16 * 1024, 20, 1, 1, "NVIDIA H100 80GB HBM3");
  CHECK(h100.tflops == Approx(280.0533).epsilon(1e-6));
  CHECK(h100.share().value() == Approx(0.283168).epsilon(1e-5));
  CHECK(h100.text() == "280 TFLOP/s, 28 % of 989");
  CHECK(computing({}, 16 * 1024, 20, 8, 8, "NVIDIA H100 80GB HBM3").tflops == h100.tflops);
  // Two ranks that take turns on it.
  CHECK(computing({}, 16 * 1024, 10, 2, 1, "NVIDIA H100 80GB HBM3").tflops == h100.tflops);
}

TEST_CASE("the peak of a GPU that is not known is to be named, and one that is named counts",
          "[bench][rates]") {
  const auto other = computing({}, 16 * 1024, 20, 1, 1, "NVIDIA Z1");
  CHECK(!other.share());
  CHECK(other.text() == "280 TFLOP/s, peak of 'NVIDIA Z1' unknown: name it with --peak-tflops");
  CHECK(computing({}, 16 * 1024, 20, 1, 1, "NVIDIA Z1", 560).text() == "280 TFLOP/s, 50 % of 560");
  CHECK(computing({}, 16 * 1024, 20, 1, 1, "NVIDIA H100 80GB HBM3", 560).text() ==
        "280 TFLOP/s, 50 % of 560");
}
