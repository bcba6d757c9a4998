// Files between this library and PyTorch, by Python's `safetensors.torch`, as users do there.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <troupe/train/safetensors.hpp>

#include "safetensors/support.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace fs = std::filesystem;
namespace safetensors = troupe::train::safetensors;
using troupe::testing::Body;
using troupe::testing::has_pytorch;
using troupe::testing::pytorch;
using troupe::testing::same_bits;
using troupe::testing::Scratch;
using troupe::testing::Tensors;
using troupe::testing::Tied;

namespace {

/// The types that both sides know, by their names in PyTorch.
const std::vector<std::pair<std::string, torch::ScalarType>> kNamedTypes{
    {"float64", torch::kDouble},
    {"float32", torch::kFloat},
    {"float16", torch::kHalf},
    {"bfloat16", torch::kBFloat16},
    {"float8_e4m3fn", torch::kFloat8_e4m3fn},
    {"float8_e4m3fnuz", torch::kFloat8_e4m3fnuz},
    {"float8_e5m2", torch::kFloat8_e5m2},
    {"float8_e5m2fnuz", torch::kFloat8_e5m2fnuz},
    {"complex64", torch::kComplexFloat},
    {"int64", torch::kLong},
    {"int32", torch::kInt},
    {"int16", torch::kShort},
    {"int8", torch::kChar},
    {"uint64", torch::kUInt64},
    {"uint32", torch::kUInt32},
    {"uint16", torch::kUInt16},
    {"uint8", torch::kByte},
    {"bool", torch::kBool}};

/// Bytes of all kinds, NaNs among them, by a rule that the Python programs here follow too.
torch::Tensor made(torch::ScalarType type, const std::vector<std::int64_t>& shape) {
  const auto bytes =
      c10::multiply_integers(shape) * static_cast<std::int64_t>(c10::elementSize(type));
  const auto rule = torch::arange(bytes).mul(37).add(11).remainder(type == torch::kBool ? 2 : 251);
  return rule.to(torch::kByte).view(type).reshape(shape);
}

constexpr auto* kMade = R"(
import math, sys, torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model
def made(dtype, shape):
    rule = (torch.arange(math.prod(shape) * dtype.itemsize) * 37 + 11) % (2 if dtype == torch.bool else 251)
    return rule.to(torch.uint8).view(dtype).reshape(shape)
def all_made(types):
    for name in types.split():
        dtype = getattr(torch, name)
        yield name + " whole", made(dtype, (2, 3, 5))
        yield name + " empty", made(dtype, (0, 7))
        yield name + " scalar", made(dtype, ())
def bits(tensor):
    return tensor.dtype, tensor.shape, tensor.contiguous().reshape(-1).view(torch.uint8).tolist()
class Body(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(3)
class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 3, bias=False)
        self.embedding = self.head.weight
def counted(tensor):
    return torch.arange(tensor.numel()).reshape(tensor.shape).to(tensor.dtype)
)";

Tensors all_made() {
  Tensors tensors;
  for (const auto& [name, type] : kNamedTypes) {
    tensors[name + " whole"] = made(type, {2, 3, 5});
    tensors[name + " empty"] = made(type, {0, 7});
    tensors[name + " scalar"] = made(type, {});
  }
  return tensors;
}

std::string names_of_types() {
  std::string names;
  for (const auto& [name, type] : kNamedTypes) names += name + ' ';
  return names;
}

/// The program finds what kMade defines.
std::string pytorch_with_made(const fs::path& folder, const std::string& program) {
  return pytorch(folder, kMade + program);
}

/// Gives each tensor of a model the values 0, 1, 2...
template <class Model>
void count_in(Model& model) {
  const torch::NoGradGuard no_gradients;
  const auto count = [](torch::Tensor tensor) {
    tensor.copy_(torch::arange(tensor.numel()).reshape(tensor.sizes()));
  };
  for (const auto& tensor : model->parameters()) count(tensor);
  for (const auto& tensor : model->buffers()) count(tensor);
}

template <class Model>
bool is_counted(const Model& model) {
  auto tensors = model->parameters();
  for (const auto& tensor : model->buffers()) tensors.push_back(tensor);
  for (const auto& tensor : tensors) {
    if (!tensor.flatten().to(torch::kLong).equal(torch::arange(tensor.numel()))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("PyTorch reads tensors of every type and shape, bit for bit", "[train][safetensors]") {
  if (!has_pytorch()) return;
  const Scratch scratch;
  auto tensors = all_made();
  tensors["transposed"] = made(torch::kBFloat16, {3, 4}).t();
  tensors["every other"] = made(torch::kFloat, {12}).slice(0, 1, 12, 2);
  tensors["repeated"] = made(torch::kFloat8_e5m2, {1, 4}).expand({3, 4});
  safetensors::save(tensors, scratch.path() / "ours", {{"format", "pt"}});
  CHECK(pytorch_with_made(scratch.path(), "expected = dict(all_made('" + names_of_types() + R"('))
expected["transposed"] = made(torch.bfloat16, (3, 4)).t()
expected["every other"] = made(torch.float32, (12,))[1::2]
expected["repeated"] = made(torch.float8_e5m2, (1, 4)).expand(3, 4)
loaded = load_file("ours")
print(len(loaded), loaded.keys() == expected.keys(), [name for name in expected if bits(loaded[name]) != bits(expected[name])])
with safe_open("ours", framework="pt") as opened:
    print([name for name in expected if bits(opened.get_tensor(name)) != bits(expected[name])], opened.metadata())
    print(bits(opened.get_slice("transposed")[1:3]) == bits(expected["transposed"][1:3]))
)") == "57 True []\n[] {'format': 'pt'}\nTrue\n");
}

TEST_CASE("tensors of every type and shape that PyTorch saves are loaded, bit for bit",
          "[train][safetensors]") {
  if (!has_pytorch()) return;
  const Scratch scratch;
  REQUIRE(pytorch_with_made(scratch.path(), "save_file(dict(all_made('" + names_of_types() +
                                                "')), 'theirs', {'by': 'PyTorch'})\n") == "");
  const auto theirs = safetensors::load(scratch.path() / "theirs");
  CHECK(theirs.metadata == safetensors::Metadata{{"by", "PyTorch"}});
  const auto expected = all_made();
  REQUIRE(theirs.tensors.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    CHECK(same_bits(theirs.tensors.at(name), tensor));
  }
}

TEST_CASE("PyTorch loads models with buffers and with tied weights", "[train][safetensors]") {
  if (!has_pytorch()) return;
  const auto type = GENERATE(torch::kFloat, torch::kBFloat16);
  const Scratch scratch;
  Body body;
  Tied tied;
  body->to(type);
  tied->to(type);
  count_in(body);
  count_in(tied);
  safetensors::save(body, scratch.path() / "body");
  safetensors::save(tied, scratch.path() / "tied");
  CHECK(pytorch_with_made(scratch.path(), R"(
dtype = load_file("body")["linear.weight"].dtype
for name, model in ("body", Body().to(dtype)), ("tied", Tied().to(dtype)):
    print(load_model(model, name), all(torch.equal(tensor, counted(tensor)) for tensor in model.state_dict().values()))
print(dtype, sorted(load_file("tied")), model.embedding is model.head.weight)
)") == "(set(), []) True\n(set(), []) True\n" +
            std::string(type == torch::kFloat ? "torch.float32" : "torch.bfloat16") +
            " ['embedding'] True\n");
}

TEST_CASE("models with buffers and with tied weights that PyTorch saves are loaded",
          "[train][safetensors]") {
  if (!has_pytorch()) return;
  const Scratch scratch;
  REQUIRE(pytorch_with_made(scratch.path(), R"(
for dtype in "float32", "bfloat16":
    for name, model in ("body", Body()), ("tied", Tied()):
        model.to(getattr(torch, dtype))
        with torch.no_grad():
            for tensor in model.state_dict().values():
                tensor.copy_(counted(tensor))
        save_model(model, name + " " + dtype)
)") == "");
  for (const std::string name : {"float32", "bfloat16"}) {
    CAPTURE(name);
    Body body;  // LibTorch's to() would convert the count of batches too, which PyTorch's does not
    safetensors::load(body, scratch.path() / ("body " + name));
    CHECK(is_counted(body));
    Tied tied;
    tied->to(name == "float32" ? torch::kFloat : torch::kBFloat16);
    safetensors::load(tied, scratch.path() / ("tied " + name));
    CHECK(is_counted(tied));
    CHECK(tied->head->weight.is_same(tied->weight));
  }
}
