#include "checkpoint/state.hpp"

#include <filesystem>
#include <fstream>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using troupe::testing::Scratch;
using troupe::train::load_module;
using troupe::train::read_info;
using troupe::train::save_module;

namespace {

/// A parameter, a buffer, and a module within that has another buffer.
struct Signal : torch::nn::Module {
  Signal(torch::Tensor weight, torch::Tensor buffer, torch::Tensor inner_buffer)
      : inner(std::make_shared<torch::nn::Module>()) {
    register_parameter("weight", std::move(weight));
    register_buffer("buffer", std::move(buffer));
    inner->register_buffer("buffer", std::move(inner_buffer));
    register_module("inner", inner);
  }
  /// The values of all, as they show.
  std::vector<torch::Tensor> values() const {
    std::vector<torch::Tensor> all;
    for (const auto& tensor : parameters())
      all.push_back(torch::view_as_real(tensor.detach().resolve_conj()).clone());
    for (const auto& tensor : buffers())
      all.push_back(tensor.is_complex() ? torch::view_as_real(tensor.resolve_conj()).clone()
                                        : tensor.resolve_neg().clone());
    return all;
  }
  std::shared_ptr<torch::nn::Module> inner;
};

torch::Tensor numbers(float first) {
  return torch::complex(torch::full({3}, first), torch::full({3}, first + 1));
}
/// Conjugated views as parameter and buffer, and a negated view, or plain tensors.
Signal lazy(float first) {
  return {numbers(first).conj(), numbers(first + 2).conj(), torch::imag(numbers(first + 4).conj())};
}
Signal plain(float first) {
  return {numbers(first), numbers(first + 2), torch::full({3}, first + 4)};
}

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  bool is_same = a.size() == 3 && b.size() == 3;
  for (std::size_t i = 0; is_same && i < a.size(); ++i) is_same = torch::equal(a[i], b[i]);
  return is_same;
}

}  // namespace

TEST_CASE("conjugated and negated tensors of a module survive its file",
          "[train][checkpoint][state]") {
  const Scratch scratch;
  const auto file = scratch.path() / "model0.pt";
  const bool is_lazy = GENERATE(true, false);
  const bool is_lazy_there = GENERATE(true, false);

  const auto saved = is_lazy ? lazy(1) : plain(1);
  const auto values = saved.values();
  save_module(saved, file);
  auto loaded = is_lazy_there ? lazy(100) : plain(100);
  load_module(loaded, file, c10::Device(c10::kCPU));
  CHECK(same(loaded.values(), values));
}

TEST_CASE("a module is after it was saved what it was before", "[train][checkpoint][state]") {
  const Scratch scratch;
  const auto base = numbers(1);
  const Signal saved(numbers(5).conj(), base.conj(), torch::imag(base.conj()));
  const auto values = saved.values();
  save_module(saved, scratch.path() / "model0.pt");
  CHECK(same(saved.values(), values));
  const auto buffer = saved.named_buffers()["buffer"];
  CHECK(buffer.is_conj());
  CHECK(buffer.const_data_ptr() == base.const_data_ptr());
  CHECK(saved.named_parameters()["weight"].requires_grad());
}

TEST_CASE("a module keeps its types whatever floating types the file has",
          "[train][checkpoint][state]") {
  const auto saved = GENERATE(torch::kFloat64, torch::kFloat32, torch::kBFloat16, torch::kHalf);
  const auto own = GENERATE(torch::kFloat64, torch::kFloat32, torch::kBFloat16, torch::kHalf);
  const auto make = [](double value, torch::ScalarType type) {
    return Signal(torch::full({3}, value, type), torch::full({2}, value + 1, type),
                  torch::full({2}, static_cast<std::int64_t>(value)));
  };
  const Scratch scratch;
  const auto file = scratch.path() / "module.pt";
  save_module(make(3, saved), file);
  auto loaded = make(9, own);
  const auto weight = loaded.parameters()[0];
  load_module(loaded, file, torch::kCPU);
  CHECK(weight.is_same(loaded.parameters()[0]));
  CHECK(weight.scalar_type() == own);
  CHECK(torch::equal(weight, torch::full({3}, 3, own)));
  CHECK(torch::equal(loaded.buffers()[0], torch::full({2}, 4, own)));
  CHECK(torch::equal(loaded.buffers()[1], torch::full({2}, 3, torch::kInt64)));
}

TEST_CASE("saving a module to a full disk is an error that says so", "[train][checkpoint][state]") {
  CHECK_THROWS_WITH(save_module(plain(1), "/dev/full"),
                    Catch::Contains("cannot write /dev/full: No space left on device"));
  CHECK_THROWS_WITH(save_module(plain(1), "/proc/nothing/model0.pt"),
                    Catch::Contains("cannot write /proc/nothing/model0.pt: No such file"));
}

TEST_CASE("a checkpoint that is not there is told with the latest one, or what it lacks",
          "[train][checkpoint][state]") {
  const Scratch storage;
  std::filesystem::create_directory(storage.path() / "checkpoint_000003");
  CHECK_THROWS_WITH(read_info(storage.path() / "checkpoint_3/checkpoint.json"),
                    Catch::Contains("checkpoint_3: there is no such checkpoint") &&
                        Catch::Contains("the latest there is") &&
                        Catch::Contains("checkpoint_000003"));
  const auto file = storage.path() / "checkpoint_000003/checkpoint.json";
  CHECK_THROWS_WITH(read_info(file),
                    Catch::Contains("checkpoint.json: cannot be read (No such file"));
  std::ofstream(file).flush();
  CHECK_THROWS_WITH(read_info(file), Catch::Contains("checkpoint.json: is empty"));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  CHECK_THROWS_WITH(read_info(file), Catch::Contains("cannot be read (Is a directory"));
}
