// Models in files: names, shared tensors, types, and what does not fit.
#include <filesystem>
#include <string>
#include <vector>

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>
#include <troupe/train/safetensors.hpp>

#include "built.hpp"
#include "python.hpp"
#include "safetensors/support.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace safetensors = troupe::train::safetensors;
using Names = std::vector<std::string>;
using Catch::Contains;
using troupe::test::python;
using troupe::testing::Body;
using troupe::testing::has_safetensors;
using troupe::testing::Scratch;
using troupe::testing::Tied;

namespace {

/// The values of a model's parameters and buffers, one behind the other.
torch::Tensor values_of_model(const torch::nn::Module& model) {
  std::vector<torch::Tensor> values;
  for (const auto& tensor : model.parameters())
    values.push_back(tensor.detach().flatten().to(torch::kDouble));
  for (const auto& tensor : model.buffers()) values.push_back(tensor.flatten().to(torch::kDouble));
  return torch::cat(values);
}

/// The error of a load of the body, which leaves it as it was.
std::string refused_load(const std::filesystem::path& file,
                         const safetensors::LoadOptions& options = {}) {
  Body body;
  const auto before = values_of_model(*body);
  try {
    safetensors::load(body, file, options);
  } catch (const std::invalid_argument& error) {
    return torch::equal(values_of_model(*body), before) ? error.what() : "the model was changed";
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("a model comes back from its file, in place", "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "body.safetensors";
  Body saved, loaded;
  saved->norm->forward(torch::randn({5, 3}));  // its buffers have values
  safetensors::save(saved, file);
  const auto weight = loaded->linear->weight;
  const auto version = weight._version();
  const auto* memory = weight.const_data_ptr();
  const auto differences = safetensors::load(*loaded, file);
  CHECK(differences.missing.empty());
  CHECK(differences.unexpected.empty());
  CHECK(torch::equal(values_of_model(*loaded), values_of_model(*saved)));
  CHECK(weight.is_same(loaded->linear->weight));
  CHECK(weight.const_data_ptr() == memory);
  CHECK(weight._version() > version);
  CHECK(weight.requires_grad());
  CHECK(safetensors::load(file).metadata == safetensors::Metadata{{"format", "pt"}});
}

TEST_CASE("a model's names are those of LibTorch, and it is held in any way",
          "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  torch::nn::Sequential model(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
  const std::shared_ptr<torch::nn::Module> pointer = model.ptr();
  safetensors::save(pointer, file, {{"format", "mine"}});
  const auto contents = safetensors::load(file);
  Names names;
  for (const auto& [name, tensor] : contents.tensors) names.push_back(name);
  CHECK(names == Names{"0.bias", "0.weight", "1.bias", "1.num_batches_tracked", "1.running_mean",
                       "1.running_var", "1.weight"});
  CHECK(contents.metadata == safetensors::Metadata{{"format", "mine"}});
  CHECK(safetensors::load(pointer, file).missing.empty());
  CHECK(safetensors::load(model, file).missing.empty());
}

TEST_CASE("a tensor with several names is written once, and read by any of them",
          "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "tied";
  Tied saved, loaded;
  safetensors::save(saved, file);
  const auto contents = safetensors::load(file);
  CHECK(contents.tensors.size() == 1);
  CHECK(contents.tensors.count("embedding") == 1);
  CHECK(contents.metadata == safetensors::Metadata{{"format", "pt"}, {"head.weight", "embedding"}});
  CHECK(safetensors::load(loaded, file).missing.empty());
  CHECK(torch::equal(loaded->head->weight, saved->weight));
  CHECK(loaded->head->weight.is_same(loaded->weight));

  safetensors::save({{"head.weight", torch::ones({3, 4})}}, file);
  safetensors::load(loaded, file);
  CHECK(torch::equal(loaded->weight, torch::ones({3, 4})));
  safetensors::save({{"head.weight", torch::ones({3, 4})}, {"embedding", torch::zeros({3, 4})}},
                    file);
  CHECK_THROWS_WITH(safetensors::load(loaded, file),
                    Contains("the model has no place for 1 ('head.weight') of the file's"));
}

TEST_CASE("values of floating point are converted to the model's types", "[train][safetensors]") {
  const auto types = {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16,
                      torch::kFloat8_e5m2};
  const Scratch scratch;
  for (const auto in_file : types) {
    for (const auto own : types) {
      Body body;
      body->to(own);
      const auto weight = body->linear->weight;
      safetensors::save({{"linear.weight", torch::full({3, 4}, 1.5).to(in_file)}},
                        scratch.path() / "file");
      safetensors::load(body, scratch.path() / "file", {.strict = false});
      CHECK(weight.is_same(body->linear->weight));
      CHECK(weight.scalar_type() == own);
      CHECK(weight.detach().to(torch::kDouble).eq(1.5).all().item<bool>());
    }
  }
}

TEST_CASE("values are read into views that are not contiguous", "[train][safetensors]") {
  const Scratch scratch;
  const auto values = torch::randn({3, 4});
  safetensors::save({{"view", values}}, scratch.path() / "file");
  torch::nn::Module model;
  const auto base = torch::zeros({4, 3});
  model.register_buffer("view", base.t());
  safetensors::load(model, scratch.path() / "file");
  CHECK(torch::equal(base.t(), values));
}

TEST_CASE(
    "a file that does not fit a model is refused with the first difference, and read not at all",
    "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  const auto begin = file.string() + " does not fit the model: ";
  Body body;
  body->linear = torch::nn::Linear(4, 3);
  auto tensors = [&] {
    safetensors::save(Body(), file);
    return safetensors::load(file).tensors;
  }();

  auto changed = tensors;
  changed["norm.weight"] = torch::ones({3, 1});
  safetensors::save(changed, file);
  CHECK(refused_load(file) ==
        begin + "'norm.weight' has the shape [3] in the model and [3, 1] in the file");
  CHECK(refused_load(file, {.strict = false}) == refused_load(file));

  changed = tensors;
  changed["norm.weight"] = torch::ones({3}, torch::kLong);
  safetensors::save(changed, file);
  CHECK(refused_load(file) ==
        begin +
            "'norm.weight' has the type Float in the model and Long in the file; only types "
            "of floating point are converted");

  changed = tensors;
  changed.erase("norm.bias");
  changed["norm.beta"] = torch::ones(3);
  safetensors::save(changed, file);
  CHECK(refused_load(file) ==
        begin +
            "the file lacks 1 ('norm.bias') of the model's tensors, and the model has no "
            "place for 1 ('norm.beta') of the file's; say by .name_in_file what a tensor is "
            "called there, or take what fits by .strict = false");
}

TEST_CASE("a tensor into which nothing can be read is refused before the others are read",
          "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  safetensors::save({{"a", torch::ones(2)}, {"b", torch::ones({3, 4})}}, file);
  const auto refused = [&](const torch::Tensor& odd) -> std::string {
    torch::nn::Module model;
    const auto first = model.register_buffer("a", torch::zeros(2));
    model.register_buffer("b", odd);
    try {
      safetensors::load(model, file);
    } catch (const std::invalid_argument& error) {
      return first.any().item<bool>() ? "the model was changed" : error.what();
    }
    return "nothing was refused";
  };
  const auto begin = file.string() + " does not fit the model: nothing can be read into 'b': ";
  CHECK(refused(torch::zeros({1, 4}).expand({3, 4})) ==
        begin + "its elements share memory, as those of an expanded view; use its clone()");
  CHECK(refused(torch::zeros({12}).as_strided({3, 4}, {1, 1})) ==
        refused(torch::zeros({1, 4}).expand({3, 4})));
  CHECK(refused(torch::zeros({3, 8}).slice(1, 0, 8, 2)) == "nothing was refused");
  CHECK(refused(torch::zeros({3, 4}).to_sparse()) ==
        begin + "its layout is Sparse; use its to_dense()");
  CHECK(refused(torch::zeros({3, 4}).to_sparse_csr()) ==
        begin + "its layout is SparseCsr; use its to_dense()");
  CHECK(refused(torch::empty({3, 4}, torch::kMeta)) ==
        begin + "it is on the device meta, and has no values");
  const auto inference = [] {
    const c10::InferenceMode guard;
    return torch::zeros({3, 4});
  }();
  CHECK(refused(inference) == begin + "it was made under c10::InferenceMode; load under it");
}

TEST_CASE("no model is refused", "[train][safetensors]") {
  const Scratch scratch;
  const std::shared_ptr<torch::nn::Module> none;
  CHECK_THROWS_WITH(safetensors::save(none, scratch.path() / "file"), Contains("pointer is null"));
  CHECK_THROWS_WITH(safetensors::load(none, scratch.path() / "file"), Contains("pointer is null"));
}

TEST_CASE("a tensor with several names is looked for under those that are not empty",
          "[train][safetensors]") {
  const Scratch scratch;
  Tied tied;
  const auto only = [](const std::string& name) {
    return [name](const std::string& other) { return other == name ? name : std::string(); };
  };
  safetensors::save({{"embedding", torch::ones({3, 4})}}, scratch.path() / "file");
  CHECK(safetensors::load(tied, scratch.path() / "file", {.name_in_file = only("embedding")})
            .missing.empty());
  CHECK(tied->weight.eq(1).all().item<bool>());
  CHECK_THROWS_WITH(
      safetensors::load(tied, scratch.path() / "file", {.name_in_file = only("head.weight")}),
      Contains("the file lacks 1 ('head.weight')"));
}

TEST_CASE("a backward that needs values from before a load says so", "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  torch::nn::Linear model(3, 3);
  safetensors::save(model, file);
  const auto input = torch::ones({2, 3}, torch::requires_grad());
  const auto output = model->forward(input).sum();
  safetensors::load(model, file);
  CHECK_THROWS_WITH(output.backward(), Contains("modified by an inplace operation"));
}

TEST_CASE("what fits is read where a load is not strict, and the rest is told",
          "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  safetensors::save({{"linear.weight", torch::ones({3, 4})}, {"other", torch::ones(1)}}, file);
  Body body;
  const auto bias = body->linear->bias.detach().clone();
  const auto differences = safetensors::load(body, file, {.strict = false});
  CHECK(differences.unexpected == Names{"other"});
  CHECK(differences.missing == Names{"linear.bias", "norm.bias", "norm.num_batches_tracked",
                                     "norm.running_mean", "norm.running_var", "norm.weight"});
  CHECK(body->linear->weight.eq(1).all().item<bool>());
  CHECK(torch::equal(body->linear->bias, bias));
}

TEST_CASE("a model's tensors are read by the names that they have in the file",
          "[train][safetensors]") {
  const Scratch scratch;
  const auto file = scratch.path() / "file";
  safetensors::save(
      {{"model.linear.weight", torch::ones({3, 4})}, {"model.linear.bias", torch::full({3}, 2.0)}},
      file);
  Body body;
  const auto norm = body->norm->weight.detach().clone();
  const auto differences =
      safetensors::load(body, file, {.name_in_file = [](const std::string& name) {
                          return name.starts_with("norm.") ? std::string() : "model." + name;
                        }});
  CHECK(differences.missing.empty());
  CHECK(body->linear->bias.eq(2).all().item<bool>());
  CHECK(torch::equal(body->norm->weight, norm));
  CHECK_THAT(refused_load(file, {.name_in_file = [](const std::string&) { return "model.x"; }}),
             Contains("the file lacks 7 ('linear.bias', 'linear.weight', 'norm.bias', "
                      "'norm.num_batches_tracked', 'norm.running_mean', ...)"));
}

TEST_CASE("Python finds a model's tensors by their names", "[train][safetensors]") {
  if (!has_safetensors()) return;
  const Scratch scratch;
  Tied tied;
  {
    const torch::NoGradGuard no_gradients;
    tied->weight.copy_(torch::arange(12).reshape({3, 4}));
  }
  tied->to(torch::kBFloat16);
  safetensors::save(tied, scratch.path() / "tied");
  CHECK(python(scratch.path(), R"(
import numpy
from safetensors import deserialize, safe_open
(name, held), = deserialize(open("tied", "rb").read())
wide = numpy.frombuffer(held["data"], numpy.uint16).astype(numpy.uint32) << 16
print(name, held["dtype"], wide.view(numpy.float32).reshape(held["shape"]).tolist())
with safe_open("tied", "np") as opened:
    print(sorted(opened.metadata().items()))
)",
               TROUPE_READERS_PYTHON) ==
        "embedding BF16 [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]\n"
        "[('format', 'pt'), ('head.weight', 'embedding')]\n");
}
