// Models in several files, with an index, as Hugging Face's hub has the large ones.
#include <filesystem>
#include <string>

#include <sys/stat.h>

#include <torch/types.h>
#include <troupe/train/safetensors.hpp>

#include "safetensors/support.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace safetensors = troupe::train::safetensors;
using troupe::testing::Body;
using troupe::testing::Scratch;
using troupe::testing::write_bytes;

namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

/// A model in two files, one of which has a tensor that the index does not name.
void save_in_two(Body& body, const std::filesystem::path& folder) {
  std::map<std::string, torch::Tensor> linear, norm;
  for (const auto& item : body->linear->named_parameters())
    linear.emplace("linear." + item.key(), item.value());
  for (const auto& item : body->norm->named_parameters())
    norm.emplace("norm." + item.key(), item.value());
  for (const auto& item : body->norm->named_buffers())
    norm.emplace("norm." + item.key(), item.value());
  norm.emplace("of another model", torch::ones(1));
  safetensors::save(linear, folder / "model-1-of-2.safetensors", {{"format", "pt"}, {"part", "1"}});
  safetensors::save(norm, folder / "model-2-of-2.safetensors", {{"format", "pt"}, {"part", "2"}});
  write_bytes(folder / kIndex, R"({"metadata": {"total_size": 160}, "weight_map": {
    "linear.weight": "model-1-of-2.safetensors", "linear.bias": "model-1-of-2.safetensors",
    "norm.weight": "model-2-of-2.safetensors", "norm.bias": "model-2-of-2.safetensors",
    "norm.running_mean": "model-2-of-2.safetensors", "norm.running_var": "model-2-of-2.safetensors",
    "norm.num_batches_tracked": "model-2-of-2.safetensors"}})");
}

}  // namespace

TEST_CASE("a model is read from the files of an index, and from a folder", "[train][safetensors]") {
  const Scratch scratch;
  Body saved, loaded;
  save_in_two(saved, scratch.path());
  const auto path = GENERATE(true, false) ? scratch.path() : scratch.path() / kIndex;
  safetensors::load(loaded, path);
  CHECK(torch::equal(loaded->linear->weight, saved->linear->weight));
  CHECK(torch::equal(loaded->linear->bias, saved->linear->bias));
  const auto all = safetensors::load(path);
  CHECK(all.tensors.size() == 7);
  CHECK(all.metadata == safetensors::Metadata{{"format", "pt"}, {"part", "1"}});
}

TEST_CASE("a folder's model.safetensors comes before its index", "[train][safetensors]") {
  const Scratch scratch;
  Body saved, loaded;
  save_in_two(saved, scratch.path());
  safetensors::save({{"a", torch::ones(1)}}, scratch.path() / "model.safetensors");
  CHECK(safetensors::load(scratch.path()).tensors.size() == 1);
}

TEST_CASE("an index that does not fit its files is refused, and says which",
          "[train][safetensors]") {
  const Scratch scratch;
  const auto index = scratch.path() / kIndex;
  Body body;
  save_in_two(body, scratch.path());
  const auto refused = [&](const std::string& text) -> std::string {
    write_bytes(index, text);
    try {
      safetensors::load(body, scratch.path());
    } catch (const troupe::Error& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  using Catch::Contains;
  CHECK_THAT(refused(R"({"weight_map": {"other": "model-1-of-2.safetensors"}})"),
             Contains(index.string() + ": its tensor 'other' is not in model-1-of-2.safetensors"));
  CHECK_THAT(refused(R"({"weight_map": {"other": "model-3-of-2.safetensors"}})"),
             Contains("model-3-of-2.safetensors: No such file or directory"));
  CHECK_THAT(refused(R"({"weight_map": {"other": "../model-1-of-2.safetensors"}})"),
             Contains("its tensor 'other' is said to be in something else than a file beside"));
  CHECK_THAT(refused(R"({"weights": {}})"), Contains("no index of safetensors"));
  CHECK_THAT(refused("weight_map"), Contains("this is no JSON"));
  const auto second = scratch.path() / "model-2-of-2.safetensors";
  std::filesystem::resize_file(second, std::filesystem::file_size(second) - 1);
  CHECK_THAT(refused(R"({"weight_map": {"norm.bias": "model-2-of-2.safetensors"}})"),
             Contains("model-2-of-2.safetensors: it is cut off"));
}

TEST_CASE("an index that is no file is waited for by nobody", "[train][safetensors]") {
  const Scratch scratch;
  const auto index = scratch.path() / kIndex;
  REQUIRE(::mkfifo(index.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(safetensors::load(scratch.path()),
                    Catch::Contains(index.string() + ": it is no file"));
}
