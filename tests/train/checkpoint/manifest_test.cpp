#include "checkpoint/manifest.hpp"

#include <string>

#include <catch2/catch.hpp>

using namespace troupe::train;
using Catch::Contains;
using safetensors::DType;

namespace {

/// Of two ranks, each of which has half of a model's weight, and of the moments of that.
Manifest halves() {
  Manifest manifest{
      .epoch = 3, .loss_scale = LossScaleState{512.1, 7, 2, 1}, .ranks = 2, .zero_stage = 3};
  manifest.models.push_back(
      {.tensors = {{"weight",
                    {.type = DType::BF16,
                     .shape = {2, 3},
                     .strides = {1, 2},
                     .pieces = {{"a", "weight[0:3]", 0, 3}, {"b", "weight[3:6]", 3, 3}}}},
                   {"none", {.type = DType::I64, .shape = {0}}},
                   {"one", {.type = DType::F64, .shape = {}, .pieces = {{"a", "one", 0, 1}}}}},
       .shared = {{"same", "weight"}}});
  const SavedTensor moment{
      .type = DType::F32, .shape = {2, 3}, .pieces = {{"b", "weight/exp_avg", 0, 6}}};
  manifest.optimizers.push_back({.type = "Adam",
                                 .file = "options",
                                 .groups = {{{"weight", {2, 3}, 9, {{"exp_avg", moment}}}}, {}}});
  manifest.files = {{"a", {8, {{"weight[0:3]", 1}, {"one", 2}}}},
                    {"b", {9, {{"weight[3:6]", ~0ULL}, {"weight/exp_avg", 3}}}},
                    {"options", {4, {{"", 5}}}}};
  return manifest;
}

/// What check_complete() says of halves() after a change.
template <class Change>
std::string fault_after(Change change) {
  auto manifest = halves();
  change(manifest);
  try {
    check_complete(manifest);
  } catch (const safetensors::FormatError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a manifest comes back as it was written", "[train][checkpoint][manifest]") {
  const auto manifest = halves();
  const auto again = parse_manifest(print_manifest(manifest));
  CHECK(again.epoch == 3);
  CHECK(again.ranks == 2);
  CHECK(again.zero_stage == 3);
  REQUIRE(again.loss_scale);
  CHECK(again.loss_scale->scale == 512.1);
  CHECK(again.models == manifest.models);
  CHECK(again.optimizers == manifest.optimizers);
  CHECK(again.files == manifest.files);
  check_complete(again);
}

TEST_CASE("a manifest with any byte changed is refused", "[train][checkpoint][manifest]") {
  const auto text = print_manifest(halves());
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    for (const char flipped : {'\x01', '\x10'}) {
      auto altered = text;
      altered[at] = static_cast<char>(altered[at] ^ flipped);
      INFO("byte " << at << " of " << text);
      CHECK_THROWS_AS(parse_manifest(altered), safetensors::FormatError);
    }
  }
  for (std::size_t length = 0; length + 2 < text.size(); length += 7)
    CHECK_THROWS_AS(parse_manifest(text.substr(0, length)), safetensors::FormatError);
}

TEST_CASE("a manifest that was altered, or is none, is told so", "[train][checkpoint][manifest]") {
  auto text = print_manifest(halves());
  text.replace(text.find("\"epoch\": 3"), 10, "\"epoch\": 4");
  CHECK_THROWS_WITH(parse_manifest(text), Contains("altered after it was written"));
  CHECK_THROWS_WITH(parse_manifest("[]"), Contains("the manifest: expected an object"));
  CHECK_THROWS_WITH(parse_manifest(text + "}"), Contains("the manifest: this is no JSON"));
  // Deeper than the stack has room for.
  constexpr std::size_t kLevels = 1'000'000;
  CHECK_THROWS_WITH(parse_manifest(R"({"checksum": )" + std::string(kLevels, '[') +
                                   std::string(kLevels, ']') + "}"),
                    Contains("the manifest: it has more than 64 levels"));
  CHECK_THROWS_WITH(parse_manifest("{}"), Contains("is no manifest of a checkpoint"));
  CHECK_THROWS_WITH(parse_manifest(R"({"format": 1, "epoch": 2})"),
                    Contains("it is of format 1; this program reads format 2"));
}

TEST_CASE("the manifests of all ranks together are that of the checkpoint",
          "[train][checkpoint][manifest]") {
  auto first = halves();
  auto second = halves();
  auto& mine = first.models[0].tensors.at("weight").pieces;
  mine.resize(1);
  first.optimizers[0].groups[0][0].steps = 0;
  first.optimizers[0].groups[0][0].tensors.clear();
  first.files.erase("b");
  auto& theirs = second.models[0].tensors;
  theirs.erase("one");
  theirs.erase("none");
  theirs.at("weight").pieces.erase(theirs.at("weight").pieces.begin());
  second.files.erase("a");
  CHECK_THROWS_AS(check_complete(first), safetensors::FormatError);
  merge(first, second);
  CHECK(first.models == halves().models);
  CHECK(first.optimizers == halves().optimizers);
  CHECK(first.files == halves().files);
}

TEST_CASE("a manifest whose tensors are not whole is refused", "[train][checkpoint][manifest]") {
  const auto weight = [](Manifest& manifest) -> SavedTensor& {
    return manifest.models[0].tensors.at("weight");
  };
  CHECK(fault_after([](Manifest&) {}) == "");
  CHECK(fault_after([&](Manifest& m) { weight(m).pieces.pop_back(); }) ==
        "'weight' of model 0: no rank has written the elements from 3 on");
  CHECK(fault_after([&](Manifest& m) { weight(m).pieces.erase(weight(m).pieces.begin()); }) ==
        "'weight' of model 0: no rank has written the elements from 0 on");
  CHECK(fault_after([&](Manifest& m) { weight(m).pieces[1].first = 2; }) ==
        "'weight' of model 0: two ranks have written the same elements");
  CHECK(fault_after([&](Manifest& m) { weight(m).pieces[1].count = 4; }) ==
        "'weight' of model 0: a piece goes beyond its end");
  CHECK(fault_after([&](Manifest& m) { weight(m).pieces[1].count = -1; }) ==
        "'weight' of model 0: a piece goes beyond its end");
  CHECK(fault_after([&](Manifest& m) {
          weight(m).shape = {-2, 3};
        }) == "'weight' of model 0: there can be no tensor of this shape");
  CHECK(fault_after([&](Manifest& m) {
          weight(m).strides = {1, 1};
        }) == "'weight' of model 0: its strides do not go with its shape");
  CHECK(fault_after([](Manifest& m) { m.files.erase("a"); }) ==
        "'one' of model 0: a piece of it is in no file");
  CHECK(fault_after([](Manifest& m) { m.files.erase("options"); }) ==
        "the file of optimizer 0 is not there");
  CHECK(fault_after([](Manifest& m) { m.models[0].shared["same"] = "gone"; }) ==
        "'same' of model 0 is said to be 'gone', which is not there");
  // Elements of a state that no rank had count as zero.
  const auto moment = [](Manifest& manifest) -> SavedTensor& {
    return manifest.optimizers[0].groups[0][0].tensors.at("exp_avg");
  };
  CHECK(fault_after([&](Manifest& m) { moment(m).pieces.clear(); }) == "");
  CHECK(fault_after([&](Manifest& m) { moment(m).pieces[0].first = 1; }) ==
        "exp_avg of 'weight' in optimizer 0: a piece goes beyond its end");
}

TEST_CASE("a manifest leads to no file elsewhere", "[train][checkpoint][manifest]") {
  for (const auto* name : {"../a", "/a", "..", ".", ""}) {
    auto manifest = halves();
    manifest.models[0].tensors.at("one").pieces[0].file = name;
    CHECK_THROWS_WITH(parse_manifest(print_manifest(manifest)), Contains("is no name of a file"));
    manifest = halves();
    manifest.files[name] = {};
    CHECK_THROWS_WITH(parse_manifest(print_manifest(manifest)), Contains("is no name of a file"));
  }
}

TEST_CASE("a manifest has what its run multiplied learning rates by", "[train][checkpoint]") {
  auto manifest = halves();
  CHECK(parse_manifest(print_manifest(manifest)).learning_rate_scale == 1);
  manifest.learning_rate_scale = 3;
  CHECK(parse_manifest(print_manifest(manifest)).learning_rate_scale == 3);
  manifest.learning_rate_scale = 0;
  CHECK_THROWS_WITH(parse_manifest(print_manifest(manifest)),
                    Contains("the learning rate scale cannot be"));
}
