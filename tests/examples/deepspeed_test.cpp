#include <fstream>

#include <catch2/catch.hpp>

#include "example.hpp"
#include "support/child.hpp"

using namespace troupe::test;

TEST_CASE("deepspeed prints what it says, privately and on a cluster", "[examples][train]") {
  check_example({.name = "train/deepspeed"});
}

TEST_CASE("deepspeed trains as a file says, whatever its name", "[examples][train]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/configuration";
  std::ofstream(file) << R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8,
      "optimizer": {"type": "AdamW", "params": {"lr": 0.05}}})";
  CHECK(run_privately({.name = "train/deepspeed", .arguments = {file}})
            .starts_with("each of 160 steps has 64 rows: on each of 2 ranks 4 times 8\n"));
}
